// The questions: which are open, and how the others were settled.

const SETTLED_MAX = 30;

/** How many pages of questions are loaded at most; the events tell of those that are asked later. */
const PAGES_MAX = 50;

/** Questions by their ids. `onChange` is told of every change. */
export class Desk {
  constructor(api, onChange) {
    Object.assign(this, { api, onChange, open: new Map(), settled: [], sending: new Set(), loading: new Set() });
  }

  /** Loads all open questions: at the start, and when events were lost. */
  async load() {
    const before = [...this.open.keys()];
    const { listed, isWhole } = await this.listed();
    const ids = new Set(listed.map((question) => question.request_id));
    // Of what was not listed whole, nothing is known; what was asked meanwhile is not settled.
    for (const id of isWhole ? before : []) {
      if (!ids.has(id)) this.settle(id, { decision: null, why: "settled meanwhile" });
    }
    for (const question of listed) this.add(question);
    this.onChange();
  }

  /** The open questions, page by page, and whether these are all of them. */
  async listed() {
    const listed = [];
    let next = "";
    for (let page = 0; page < PAGES_MAX && next !== null; page += 1) {
      const found = await this.api.get(`/confirmations${next && `?cursor=${encodeURIComponent(next)}`}`);
      listed.push(...found.confirmations);
      next = found.next ?? null;
    }
    return { listed, isWhole: next === null };
  }

  add(question) {
    const at = this.settled.findIndex((entry) => entry.question.request_id === question.request_id);
    if (at >= 0 && this.settled[at].decision !== null) return;
    // One that nobody has answered is asked again under its id, as after an edit that may not run.
    if (at >= 0) this.settled.splice(at, 1);
    const known = this.open.get(question.request_id);
    // A list has less than was loaded of the same call; of another call nothing that was loaded holds.
    const isSame = known?.isWhole && known.digest === question.digest;
    const { refused, expires_ms } = question;
    this.open.set(question.request_id, isSame ? { ...question, ...known, refused, expires_ms } : { ...known, ...question, isWhole: false });
  }

  /** Loads everything about one question: whole arguments, changes, what will run. */
  async whole(question) {
    const id = question.request_id;
    if (this.loading.has(id)) return;
    this.loading.add(id);
    try {
      await this.loadWhole(question);
    } catch (problem) {
      // Settled meanwhile: its event may have been lost.
      if ([404, 409, 410].includes(problem.status)) this.refused(question, problem);
    } finally {
      this.loading.delete(id);
    }
  }

  async loadWhole(question) {
    const path = `/sessions/${encodeURIComponent(question.session)}/confirmations/${encodeURIComponent(question.request_id)}`;
    const whole = await this.api.get(path);
    if (this.open.has(question.request_id)) {
      this.open.set(question.request_id, { ...this.open.get(question.request_id), ...whole, isWhole: true });
      this.onChange();
    }
  }

  /** Takes an event of a call with this question. */
  async heard(call, event) {
    if (event.event === "tool.confirmation_requested" && !event.shares) {
      this.add(fromEvent(call, event));
      this.onChange();
    } else if (event.event === "tool.confirmation_resolved") {
      const { decision, who, error, by } = event;
      const id = call.questions.findLast((asked) => asked.settled === event)?.request ?? this.ofCall(event);
      if (id) this.settle(id, { decision: decision ?? null, who, why: error, by });
    } else if (call.end === event) {
      for (const { request } of call.questions) this.settle(request, { decision: null, why: "the call has ended" });
    }
  }

  /** The open question of a call that was asked before this page saw its events. */
  ofCall({ session, turn, call_id: call }) {
    const of = (question) => question.session === session && question.turn === turn && question.call_id === call;
    return [...this.open.values()].find(of)?.request_id;
  }

  /** Moves a question to the settled ones; the first settlement stays, as with the server. */
  settle(id, how) {
    const question = this.open.get(id);
    if (!question) return;
    this.open.delete(id);
    // The event of an answer may come before the server's word that it counts.
    this.settled.unshift({ question, mine: this.sending.has(id), ...how });
    this.settled.length = Math.min(this.settled.length, SETTLED_MAX);
    this.onChange();
  }

  /** Sends an answer; returns what is to be said about it. */
  async answer(question, decision, { reason, args } = {}) {
    const path = `/sessions/${encodeURIComponent(question.session)}/turns/${question.turn}/confirmations/${encodeURIComponent(question.request_id)}`;
    const body = { decision, digest: question.digest };
    if (reason) body.reason = reason;
    if (args !== undefined) body.arguments = args;
    this.sending.add(question.request_id);
    try {
      const { who } = await this.api.post(path, body);
      this.settle(question.request_id, { decision, who, mine: true });
      return `${DONE[decision]}: ${question.tool}`;
    } catch (problem) {
      return this.refused(question, problem);
    } finally {
      this.sending.delete(question.request_id);
    }
  }

  refused(question, { status, code, message, body }) {
    if (code === "already_resolved") {
      this.settle(question.request_id, { decision: body.decision, who: body.who });
      const entry = this.settled.find((one) => one.question.request_id === question.request_id);
      if (entry) entry.mine = false;
      this.onChange();
      return `Answered elsewhere by ${body.who}: ${body.decision}`;
    }
    if (status === 410 || status === 404) {
      this.settle(question.request_id, { decision: null, why: code });
      return code === "expired" ? "Too late: the time to answer has run out" : "The question was withdrawn";
    }
    if (code === "digest_mismatch" && body.question) {
      this.open.set(question.request_id, { ...body.question, isWhole: true, note: "What would run has changed. Look at it again before you answer." });
      this.onChange();
      return "What would run has changed";
    }
    if (code === "edit_refused") {
      this.open.set(question.request_id, { ...question, refused: message });
      this.onChange();
    }
    return message || "The answer could not be sent";
  }
}

const DONE = { allow: "Allowed", always: "Always allowed", deny: "Denied", never: "Never allowed" };

/** What an event tells of a question, until the rest is loaded. */
function fromEvent(call, event) {
  return {
    request_id: event.request,
    session: event.session,
    agent: event.agent,
    turn: event.turn,
    call_id: event.call_id,
    tool: event.tool_name,
    side_effects: event.side_effects,
    digest: event.digest,
    asked_ms: event.wall_ms,
    expires_ms: event.wall_ms + event.expires_ms,
    summary: event.input_summary,
  };
}

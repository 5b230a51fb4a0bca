// The live page: signs in, loads what is, and follows what happens.

import { Api, Problem, signIn } from "./api.js";
import { Desk } from "./desk.js";
import { el } from "./el.js";
import { Frame, onlyNote } from "./frame.js";
import { Log } from "./log.js";
import { Now } from "./now.js";
import { patterns } from "./patterns.js";
import { Questions } from "./questions.js";
import { addSession, addStub, loadResults } from "./results.js";
import { Stream } from "./stream.js";
import { Tip } from "./tip.js";
import { Turns } from "./turns.js";

const STATUS_EVERY_MS = 2_000;

/** How many pages of sessions are loaded at most; the events tell of what happens in the others. */
const SESSION_PAGES_MAX = 20;

/** How often the result of a call is looked for: its end is told of a little before its result is there. */
const LOADS_MAX = 5;

/** How often the page is drawn: big turns less often, so that what scrolls stays fluid. */
const DRAW_MS = 120;
const DRAW_BIG_MS = 500;
const BIG = 2_000;

/** The page, once it has a key. */
class Live {
  constructor(key) {
    this.api = new Api(key, () => this.ended());
    this.log = new Log();
    this.skew = 0;
    this.loading = null;
    this.desk = new Desk(this.api, () => this.changed());
    this.tip = new Tip();
    this.turns = new Turns({ log: this.log, tip: this.tip, now: (turn) => this.now(turn), onTurn: (turn) => this.results(turn), onCall: (call) => this.resultOf(call) });
    this.turns.details.actions = (call) => this.cancelButton(call);
    this.turns.turnView.actions = (turn) => this.cancelTurnButton(turn);
    this.nowView = new Now({ log: this.log, operate: (...change) => this.operate(...change), onTurn: (turn) => this.openTurn(turn) });
    this.questions = new Questions({ desk: this.desk, nowMs: () => Date.now() + this.skew });
    this.frame = new Frame([
      { name: "turns", title: "Turns", node: this.turns.node },
      { name: "now", title: "Now", node: this.nowView.node },
      { name: "questions", title: "Questions", node: this.questions.node },
    ]);
    this.frame.onOpen = () => {
      this.changed();
      this.status().catch(() => {});
    };
    document.body.replaceChildren(this.frame.node, this.tip.node, patterns());
    this.stream = new Stream(this.api, {
      event: (event) => this.event(event),
      reset: () => this.reset(),
      state: (state) => this.frame.connection(state),
    });
  }

  async start() {
    const status = await this.status();
    await this.desk.load();
    this.stream.start(`${status.epoch}.0`);
    setInterval(() => !document.hidden && this.status().catch(() => {}), STATUS_EVERY_MS);
    this.draw();
  }

  /** The moment at which what is open in a turn ends: now, as far as that life still goes on. */
  now(turn) {
    const { life } = turn.session;
    if (turn.ended !== null || life !== this.log.life || life.wallBase === null) return turn.until;
    return Math.max(life.last, (Date.now() + this.skew - life.wallBase) * 1000);
  }

  async status() {
    const status = await this.api.get("/status");
    this.skew = status.now_ms - Date.now();
    this.startedMs = status.started_ms;
    if (this.epoch && this.epoch !== status.epoch) this.reset();
    this.epoch = status.epoch;
    this.recount(status.questions);
    if (this.frame.current === "now") this.nowView.show(status);
    this.frame.tell(status.draining ? "The engine is shutting down: nothing new starts." : "");
    return status;
  }

  /** Loads the questions again if the server counts others, twice in a row: an event may be on its way. */
  recount(questions) {
    const differs = questions !== this.desk.open.size;
    if (differs && this.differed) this.desk.load().catch(() => {});
    this.differed = differs;
  }

  event(event) {
    const turn = this.log.add(event);
    if (turn && event.index !== undefined) {
      this.desk.heard(turn.byPlace.get(`${event.batch ?? 0}/${event.index}`), event);
    }
    this.changed();
  }

  /** Some events are lost: what they built is dropped, and what the server knows takes its place. */
  reset() {
    this.log.clear();
    this.turns.forget();
    this.loading ??= this.load().catch(() => {}).finally(() => (this.loading = null));
  }

  async load() {
    for (let page = 0, next = ""; page < SESSION_PAGES_MAX && next !== null; page += 1) {
      const found = await this.api.get(`/sessions${next && `?cursor=${encodeURIComponent(next)}`}`);
      for (const session of found.sessions) addSession(this.log, session);
      next = found.next;
    }
    const { turns } = await this.api.get("/turns?limit=200");
    for (const turn of turns.toReversed()) addStub(this.log, turn, this.startedMs);
    await this.desk.load();
    this.changed();
  }

  /** Loads arguments and results of a turn, as far as its calls have ended since the last time. */
  results(turn) {
    if (turn.session.life !== this.log.life || turn.isLoading || turn.loaded === turn.finished + 1) return;
    turn.loaded = turn.finished + 1;
    turn.isLoading = true;
    loadResults(this.api, turn).then(() => this.changed(), () => {}).finally(() => (turn.isLoading = false));
  }

  /** Loads arguments and result of a call that has ended, also while it was looked at. */
  resultOf(call) {
    const { turn } = call;
    // The server has those of the turn's own batch.
    if (!call.end || call.batch !== turn.calls[0].batch) return;
    if (call.arguments !== null || turn.isLoading || call.loads === LOADS_MAX) return;
    call.loads += 1;
    turn.loaded = 0;
    this.results(turn);
  }

  async operate(method, path, body) {
    try {
      await this.api.ask(method, path, body);
    } catch (problem) {
      this.frame.complain(problem.message);
      return;
    }
    this.frame.complain("");
    await this.status();
  }

  cancelButton(call) {
    const { turn } = call;
    // Only the calls of the turn's own batch have a number that the server knows.
    if (call.end || turn.session.life !== this.log.life || call.batch !== turn.calls[0].batch) return null;
    return button("Cancel", () => this.operate("POST", `${turnPath(turn)}/calls/${call.index}/cancel`, {}));
  }

  cancelTurnButton(turn) {
    if (turn.ended !== null || turn.cancelled || turn.session.life !== this.log.life) return null;
    return button("Cancel the turn", () => this.operate("POST", `${turnPath(turn)}/cancel`, {}));
  }

  openTurn(turn) {
    this.frame.open("turns");
    this.turns.open(turn);
  }

  changed() {
    this.dirty = true;
  }

  /** Draws again and again, as long as something changes or goes on. */
  draw() {
    const { turn } = this.turns.turnView;
    const goesOn = turn && turn.ended === null;
    if (!document.hidden && (this.dirty || goesOn)) {
      this.dirty = false;
      this.frame.questions(this.desk.open.size);
      if (this.frame.current === "turns") this.turns.refresh();
      if (this.frame.current === "questions") this.questions.refresh();
      if (this.frame.current === "now") this.nowView.drawSessions();
    }
    this.questions.tick();
    setTimeout(() => requestAnimationFrame(() => this.draw()), (turn?.calls.length ?? 0) > BIG ? DRAW_BIG_MS : DRAW_MS);
  }

  ended() {
    this.stream.stop();
    linkHasEnded();
  }
}

function button(name, onClick) {
  return el("button", { type: "button", class: "danger", on: { click: onClick } }, name);
}

function turnPath({ session, number }) {
  return `/sessions/${encodeURIComponent(session.name)}/turns/${number}`;
}

function linkHasEnded() {
  onlyNote("This link has ended", "Start toolyard serve again and open the link that it prints.");
}

async function openPage() {
  let key;
  try {
    key = await signIn();
  } catch (problem) {
    if (problem instanceof Problem && problem.code === "link_used") onlyNote("This link was used before", "Each link opens one page, once. Start toolyard serve again and open the link that it prints.");
    else onlyNote("The page cannot sign in", problem.message);
    return;
  }
  if (!key) {
    onlyNote("This page needs its link", "Open the link that toolyard serve prints; it holds a code that works once.");
    return;
  }
  const live = new Live(key);
  live.start().catch((problem) => {
    if (problem.status !== 401) onlyNote("The server does not answer", `${problem.message}. Load the page again when it runs.`);
  });
}

openPage();

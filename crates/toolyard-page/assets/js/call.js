// What the events say about one call.

const TEXT_MAX = 64 * 1024;

const ENDS = new Set([
  "tool.completed",
  "tool.failed",
  "tool.call.denied",
  "tool.input_invalid",
  "call.suspended",
]);

/** Whether an event of this kind ends its call. */
export function endsCall(kind) {
  return ENDS.has(kind);
}

/** A call, with times in microseconds of its life of the engine. */
export class Call {
  constructor(turn, event) {
    this.turn = turn;
    this.batch = event.batch ?? 0;
    this.index = event.index ?? 0;
    this.run = event.run ?? 0;
    this.id = event.call_id ?? "";
    this.tool = event.tool_name ?? "";
    this.received = event.mono_us;
    this.bytes = event.bytes;
    this.digest = event.digest;
    this.questions = [];
    this.called = null;
    this.attempts = [];
    this.output = [];
    this.outputLength = 0;
    this.outputCut = false;
    this.end = null;
    this.late = null;
    this.arguments = null;
    this.result = null;
    this.loads = 0;
  }

  /** Takes one of its events. */
  add(event) {
    if (event.tool_name) this.tool = event.tool_name;
    if (event.digest) this.digest = event.digest;
    switch (event.event) {
      case "tool.confirmation_requested":
        this.questions.push({ asked: event.mono_us, request: event.request, event, settled: null });
        break;
      case "tool.confirmation_resolved":
        this.settle(event);
        break;
      case "tool.called":
        this.called = event;
        break;
      case "dispatch.attempt":
        this.attempts.push({ number: event.attempt, from: event.mono_us, to: null, code: null, delay: 0 });
        break;
      case "dispatch.retry":
        this.retried(event);
        break;
      case "tool.output_delta":
        this.heard(event.text ?? "");
        break;
      case "dispatch.late_result":
        this.late = event;
        break;
      default:
        if (endsCall(event.event)) this.ended(event);
    }
  }

  settle(event) {
    const open = this.questions.findLast((question) => !question.settled);
    if (open) open.settled = event;
  }

  retried(event) {
    const last = this.attempts.at(-1);
    if (!last) return;
    last.to = event.mono_us;
    last.code = event.code;
    last.delay = event.delay_ms;
  }

  ended(event) {
    this.end = event;
    const last = this.attempts.at(-1);
    if (last && last.to === null) last.to = event.mono_us;
  }

  /** Keeps the newest output only: a page that watches all day must not grow without bound. */
  heard(text) {
    this.output.push(text);
    this.outputLength += text.length;
    while (this.outputLength > TEXT_MAX && this.output.length > 1) {
      this.outputLength -= this.output.shift().length;
      this.outputCut = true;
    }
  }

  /** The question that waits for an answer, if one does. */
  get question() {
    if (this.end) return null;
    return this.questions.findLast((question) => !question.settled) ?? null;
  }

  /** ok, failed, refused, suspended, running, asks, waits. */
  get state() {
    if (this.end) return stateOfEnd(this.end.event);
    if (this.question) return "asks";
    return this.called ? "running" : "waits";
  }

  /** The same of one that has not started: when the last call before its run ended. */
  get readyNow() {
    const since = this.questions.length > 0 ? null : (this.turn.runs.get(this.batch)?.ready(this.run) ?? null);
    return since === null ? null : Math.max(this.received, since);
  }

  /** When it was ready for its permits; null if that is not known yet. */
  get ready() {
    const last = this.called ?? this.end;
    if (!last) return this.readyNow;
    if (last.queue_ms === undefined) return null;
    const until = this.called ? last.mono_us : last.mono_us - (last.duration_ms ?? 0) * 1000;
    return Math.max(this.received, until - last.queue_ms * 1000);
  }
}

function stateOfEnd(kind) {
  if (kind === "tool.completed") return "ok";
  if (kind === "tool.failed") return "failed";
  return kind === "call.suspended" ? "suspended" : "refused";
}

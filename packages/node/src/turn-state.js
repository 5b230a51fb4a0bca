// A turn that is open, as the link knows it.

import { entryOf } from "./calls.js";
import { Refused, refused } from "./errors.js";
import { readOutcome } from "./outcome.js";
import { Queue } from "./queue.js";

/** Collects what comes of a turn, until its `turn_ended`. */
export class TurnState {
  #isOurs;
  #lines = 0;
  #numbers = 0;
  #tools = new Map();
  #waiting = new Map();
  #byLine = new Map();
  #outcomes = [];
  #settle;
  #over;

  constructor(name, isOurs, { deltas = false } = {}) {
    this.name = name;
    this.#isOurs = isOurs;
    this.done = false;
    this.deltas = deltas ? new Queue() : undefined;
    this.ended = new Promise((resolve, reject) => (this.#settle = { resolve, reject }));
    // Who does not wait for it need not hear how it ended.
    this.ended.catch(() => {});
  }

  /**
   * The id of a line with these calls, the calls as it has them, and who waits for each. Throws what has ended the turn,
   * if it has ended: nobody would answer.
   */
  lineOf(calls, prefix = "") {
    if (this.#over) throw this.#over();
    const entries = calls.map((call) => entryOf(call, `${prefix}${(this.#numbers += 1)}`));
    const ids = new Set(entries.map((entry) => entry.tool_call_id));
    if (ids.size < entries.length || entries.some((entry) => this.#tools.has(entry.tool_call_id))) {
      throw new TypeError("an id of a call is in a turn once");
    }
    const line = this.nextLine();
    this.#byLine.set(line, [...ids]);
    const sent = entries.map(({ tool_call_id: id, tool }) => {
      this.#tools.set(id, tool);
      const outcome = new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
      outcome.catch(() => {});
      return { id, tool, outcome };
    });
    return { line, entries, sent };
  }

  nextLine() {
    this.#lines += 1;
    return this.#lines === 1 ? this.name : `${this.name}.${this.#lines}`;
  }

  get hasBegun() {
    return this.#lines > 0;
  }

  /** A line was not sent, or was refused: its calls do not exist. Without any, neither does the turn. */
  forget(line, error) {
    for (const id of this.#byLine.get(line) ?? []) this.#take(id)?.reject(error);
    this.#byLine.delete(line);
    if (line === this.name) this.fail(() => error);
  }

  takeResponse(message) {
    const id = message.tool_call_id;
    const outcome = readOutcome(message, this.#tools.get(id) ?? "", this.#isOurs);
    this.#outcomes.push({ place: message.index ?? this.#outcomes.length, outcome });
    this.#take(id)?.resolve(outcome);
  }

  takeDelta({ tool_call_id: callId, text }) {
    this.deltas?.put({ callId, text });
  }

  end({ results, number = 0 }) {
    this.#end(tooLate);
    const outcomes = this.#outcomes.sort((a, b) => a.place - b.place).map(({ outcome }) => outcome);
    this.#settle.resolve({ messages: results ?? [], outcomes, number });
  }

  /** Nothing more comes of it. */
  fail(error) {
    if (this.done) return;
    this.#end(error);
    this.#settle.reject(error());
  }

  /** Calls that were not answered never will be: the turn had ended before they were added, or nothing comes any more. */
  #end(error) {
    this.done = true;
    this.#over = error;
    for (const { reject } of this.#waiting.values()) reject(error());
    this.#waiting.clear();
    this.deltas?.end();
  }

  #take(id) {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    return waiting;
  }
}

function tooLate() {
  const text = "the turn had ended before the call was added, which did not run: begin another one";
  return new Refused(text, { code: "turn_closed" });
}

/** Whether an `error` says of a turn no more than that it had ended by itself meanwhile. */
export function endsWhatHasEnded({ turn, code }) {
  return turn != null && (code === "turn_closed" || code === "not_found");
}

/** The turns that have not ended, by name. */
export class OpenTurns {
  #last = 0;
  #open = new Map();

  get size() {
    return this.#open.size;
  }

  open(isOurs, options) {
    const turn = new TurnState(`t${(this.#last += 1)}`, isOurs, options);
    this.#open.set(turn.name, turn);
    return turn;
  }

  find(name) {
    return this.#open.get(name);
  }

  takeEnd(message) {
    const turn = this.#open.get(message.turn);
    this.#open.delete(message.turn);
    turn?.end(message);
  }

  /**
   * Whether it is about calls of a turn that is open; it goes on unless that was its first line. Only lines with calls
   * have an id that is the turn's.
   */
  takeError(message) {
    const line = message.id;
    const turn = typeof line === "string" ? this.#open.get(line.split(".")[0]) : undefined;
    if (!turn) return false;
    turn.forget(line, refused(message));
    if (line === turn.name) this.drop(turn);
    return true;
  }

  drop(turn) {
    this.#open.delete(turn.name);
  }

  end(error) {
    for (const turn of this.#open.values()) turn.fail(error);
    this.#open.clear();
  }
}

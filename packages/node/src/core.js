// A running program, and everything that hears from it.
//
//     Session ─► Core ─► Link ─► toolyard
//                 ▲        ├─► OpenTurns    what comes of turns
//                 │        ├─► Runner       tool_invoke: functions
//                 │        ├─► Desk         confirm: `approve`
//                 │        └─► Queues       event: `events()`
//                 └──── answers of functions and of `approve`

import { messageOf } from "./calls.js";
import { Desk } from "./desk.js";
import { Closed, Disconnected } from "./errors.js";
import { Runner } from "./invocation.js";
import { Link } from "./link.js";
import { Process } from "./process.js";
import { Queue } from "./queue.js";
import { asTool } from "./tool.js";
import { endsWhatHasEnded, OpenTurns } from "./turn-state.js";

/** A program whose input has ended has 5 s for what it runs. */
const PATIENCE_MS = 8_000;

export class Core {
  #options;
  #process;
  #link;
  #turns = new OpenTurns();
  #runner = new Runner(this);
  #desk;
  #events = new Set();
  #flags = { deltas: false, events: false };

  constructor(command, options) {
    this.#options = options;
    // What it throws is not to end the conversation.
    this.log = (text, level) => {
      try {
        options.log(text, level);
      } catch {}
    };
    this.#desk = options.approve && new Desk(options.approve, this);
    this.#process = new Process(command, { ...options, log: this.log });
    this.#link = new Link(this.#process, this.#handlers(), (error) => this.#ended(error));
  }

  /** Says hello and registers the tools; resolves to the welcome. */
  async greet(tools) {
    const [welcome] = await Promise.all([this.#hello(), ...tools.map((one) => this.register(one))]);
    return welcome;
  }

  async register(one) {
    const tool = asTool(one);
    const undo = this.#runner.add(tool);
    try {
      return await this.request("register", { definition: tool.definition });
    } catch (error) {
      undo();
      throw error;
    }
  }

  async unregister(name) {
    await this.request("unregister", { tool: name });
    this.#runner.remove(name);
  }

  request(op, fields) {
    return this.#link.request(op, fields);
  }

  respond(place, response, { from, to, deltas }) {
    const turn = this.#open(deltas);
    const message = { op: "respond", turn: turn.name, message: messageOf(response), from, to, each: true, ...place };
    this.#sendLine(turn, turn.nextLine(), message);
    return turn;
  }

  begin(place, calls, { more, deltas }) {
    const turn = this.#open(deltas);
    return { turn, sent: this.#sendCalls(turn, calls, { ...place, more: more || undefined }) };
  }

  add(turn, calls) {
    return this.#sendCalls(turn, calls, { more: true, continues: true });
  }

  endTurn(turn) {
    this.#link.send({ op: "turn_end", turn: turn.name });
  }

  /** Asks to stop one call or all of a turn; of what has ended it does nothing. */
  cancel(turn, callId) {
    if (turn.done) return;
    try {
      this.#link.send({ op: "cancel", turn: turn.name, tool_call_id: callId });
    } catch (error) {
      if (!(error instanceof Disconnected)) throw error;
    }
  }

  room() {
    return this.#link.room();
  }

  /** Events of the engine from now on, as they come; `kinds` is a list, or all. */
  events(kinds) {
    const queue = new Queue({ missed: ({ cursor }) => ({ event: "reset", cursor }) });
    const wanted = kinds && new Set(kinds);
    const entry = { queue, wants: (kind) => !wanted || wanted.has(kind) };
    this.#link.check();
    this.#events.add(entry);
    if (!this.#flags.events) this.#ask({ events: true });
    return until(queue, () => this.#events.delete(entry));
  }

  // What functions need

  answer(line) {
    this.#link.send(line);
  }

  dispatchWithin(callId, calls) {
    const turn = this.#open(false);
    // Elsewhere they belong to the turn of the function's own call, whose ids are not to be theirs.
    this.#sendCalls(turn, calls, { within: callId }, `${turn.name}.`);
    return turn.ended;
  }

  // The end

  /** Turns that are open run to their ends, and then the program exits. */
  bye() {
    this.#link.closing();
    return this.request("bye");
  }

  async end(patienceMs = PATIENCE_MS) {
    this.#process.hold(true);
    this.#link.endInput();
    await this.#process.end(patienceMs);
  }

  /** This program stays alive while something of it waits. */
  held() {
    this.#process.hold(this.#link.waits || this.#turns.size > 0 || this.#runner.size > 0);
  }

  #ended(error) {
    this.#turns.end(error);
    this.#runner.cancelAll();
    this.#desk?.endAll();
    for (const { queue } of this.#events) queue.end();
    this.#events.clear();
  }

  #hello() {
    return this.request("hello", { protocol: 1, meta: true, confirm: Boolean(this.#desk), ...this.#flags });
  }

  #ask(flags) {
    Object.assign(this.#flags, flags);
    this.#hello().catch(() => {});
  }

  #open(deltas) {
    if (deltas && !this.#flags.deltas) this.#ask({ deltas: true });
    this.#link.check();
    const turn = this.#turns.open((name) => this.#runner.has(name), { deltas });
    this.held();
    return turn;
  }

  #sendCalls(turn, calls, fields, prefix) {
    let made;
    try {
      made = turn.lineOf([...calls], prefix);
    } catch (error) {
      if (!turn.hasBegun) this.#drop(turn);
      throw error;
    }
    this.#sendLine(turn, made.line, { op: "tool_calls", turn: turn.name, calls: made.entries, ...fields });
    return made.sent;
  }

  #sendLine(turn, line, message) {
    try {
      this.#link.send({ ...message, id: line });
    } catch (error) {
      turn.forget(line, new Closed(`the calls were not sent: ${error.message}`));
      if (line === turn.name) this.#drop(turn);
      throw error;
    }
  }

  #drop(turn) {
    this.#turns.drop(turn);
    this.held();
  }

  #handlers() {
    const told = (event, kind) => {
      for (const { queue, wants } of this.#events) if (wants(kind)) queue.put(event);
    };
    return {
      held: () => this.held(),
      tool_invoke: (message) => this.#runner.invoke(message),
      tool_cancel: ({ call_id: id }) => this.#runner.cancel(id),
      tool_response: (message) => this.#turns.find(message.turn)?.takeResponse(message),
      tool_delta: (message) => this.#turns.find(message.turn)?.takeDelta(message),
      turn_ended: (message) => {
        this.#turns.takeEnd(message);
        this.held();
      },
      confirm: (message) => this.#desk?.ask(message),
      confirm_ended: (message) => this.#desk?.end(message),
      event: ({ event, cursor }) => told({ ...event, cursor }, event.event),
      event_reset: ({ cursor }) => told({ event: "reset", cursor }, "reset"),
      shutdown: ({ grace_ms: ms }) => this.log(`the program ends in ${ms} ms`, "warn"),
      error: (message) => {
        const { refused, id } = message;
        if (["tool_result", "tool_failed"].includes(refused) && id) return this.#runner.refused(id, message.message);
        const level = endsWhatHasEnded(message) ? "info" : "warn";
        if (!this.#turns.takeError(message)) this.log(`line ${message.line} was refused: ${message.message}`, level);
        this.held();
      },
    };
  }
}

/** The same things, and what is done when nobody wants more. */
async function* until(things, after) {
  try {
    yield* things;
  } finally {
    after();
  }
}

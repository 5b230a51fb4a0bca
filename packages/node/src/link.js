// The conversation with a program: what is sent, who waits for what, and how it ends.
//
//     Link.request, Link.send ──► standard input ──► toolyard ──► standard output ──► Link.#receive ──► promises, handlers
//
// Nobody waits for an answer before something else is sent, and lines are read all the time.

import { Closed, ProgramDied, ProtocolError, refused } from "./errors.js";
import { decode, encode, Splitter } from "./lines.js";

/** Bytes that may wait to be written; then who makes calls waits. */
const ROOM = 64 * 1024 * 1024;

const ANSWERS = new Set(["welcome", "opened", "forked", "closed", "definitions", "confirmed", "registered", "unregistered", "goodbye"]);

export class Link {
  #process;
  #handlers;
  #ended;
  #ids = 0;
  #pending = new Map();
  #gone;
  #closing = false;
  #done;

  /**
   * `handlers` has what is done about each operation that is no answer to a request. `ended` is told once why nothing
   * comes any more, by what makes the error for each who waits.
   */
  constructor(process, handlers, ended) {
    this.#process = process;
    this.#handlers = handlers;
    this.#ended = ended;
    const lines = new Splitter((line) => this.#receive(line));
    process.output.on("data", (piece) => this.#gone || lines.feed(piece));
    this.#done = process.exit.then(({ code, signal }) => this.#end(() => died(code, signal, process.tail)));
    process.started.catch((error) => this.#end(() => error));
  }

  /** Resolves when nothing comes any more. */
  get done() {
    return this.#done;
  }

  get waits() {
    return this.#pending.size > 0;
  }

  /** Sends a request, and resolves to its answer. */
  request(op, fields = {}) {
    return new Promise((resolve, reject) => {
      const id = (this.#ids += 1);
      this.send({ op, id, ...fields });
      this.#pending.set(id, { resolve, reject });
      this.#handlers.held();
    });
  }

  /** Sends a line. */
  send(message) {
    const line = encode(message);
    this.check();
    this.#process.input.write(line);
  }

  /** Waits while too much of what was sent has not been written. */
  async room() {
    while (!this.#gone && this.#process.input.writableLength > ROOM) {
      await new Promise((resolve) => {
        this.#process.input.once("drain", resolve);
        this.#process.input.once("close", resolve);
      });
    }
  }

  /** Throws why nothing can be sent, if it is so. */
  check() {
    if (this.#gone) throw this.#gone();
  }

  /** From now on the end of the program is no failure. */
  closing() {
    this.#closing = true;
  }

  /** What runs is cancelled, and the program ends. */
  endInput() {
    this.#closing = true;
    this.#process.input.end();
  }

  #receive(line) {
    if (this.#gone) return;
    try {
      const message = decode(line);
      if (message) this.#take(message);
    } catch (cause) {
      const text = cause instanceof ProtocolError ? cause.message : `a line of the program was not understood: ${cause.stack}`;
      this.#end(() => new ProtocolError(text));
      this.#process.input.end();
    }
  }

  #take(message) {
    const { op, id } = message;
    const waiting = this.#pending.get(id);
    if (ANSWERS.has(op) || (op === "error" && waiting)) {
      this.#pending.delete(id);
      if (op === "error") waiting.reject(refused(message));
      else waiting?.resolve(message);
      this.#handlers.held();
    } else {
      // A later version may have more operations, which nobody has asked for.
      this.#handlers[op]?.(message);
    }
  }

  #end(error) {
    if (this.#gone) return;
    this.#gone = this.#closing ? () => new Closed("the engine was closed") : error;
    for (const { reject } of this.#pending.values()) reject(this.#gone());
    this.#pending.clear();
    this.#ended(this.#gone);
  }
}

function died(exitCode, signal, stderr) {
  const how = signal ? `was ended by ${signal}` : `has ended with the exit code ${exitCode}`;
  return new ProgramDied(`the program ${how}\n${stderr}`.trimEnd(), { exitCode, signal, stderr });
}

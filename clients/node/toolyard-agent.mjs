// An agent of Toolyard: a program that acts by asking its supervisor for tools.
//
//     import { connect } from "./toolyard-agent.mjs";
//
//     const agent = await connect();
//     const notes = await agent.tools.call("Read", { path: "/data/notes.md" });
//     await agent.bye({ bytes: notes.size });
//
// Started with `toolyard supervise --tools Read --fs r:/data -- node agent.mjs`. Needs Node 18 and nothing else.
//
//     Tools.call ──► Agent, its queue ──► a line ──► standard output, or the socket on descriptor 3
//         ▲                                              │
//         └── Call, a promise ◄── Agent ◄── a line ◄── standard input, or the same socket
//
// Nobody waits for an answer before something else is sent, and answers are read all the time, so neither side waits for
// the other. A line waits in the queue while the pipe is full, or while IN_FLIGHT_MAX calls have not been answered.
//
// On the channel `stdio`, `connect` sends what the program writes to process.stdout, such as console.log, to standard
// error. Connect first: what is written before goes to the supervisor, which refuses it, and so does all that goes around
// process.stdout (`fs.writeSync(1, …)`, a subprocess with `stdio: "inherit"`). A program that needs it takes `fd3`.

import { Socket } from "node:net";

/** Calls without an answer. One more would wait at the supervisor, and the lines behind it with it, a cancel too. */
export const IN_FLIGHT_MAX = 1_000;

/** Bytes of a line without its end. The supervisor ends an agent that writes a longer one. */
export const LINE_MAX = 4 * 1024 * 1024;

/**
 * A tool that this agent may call.
 * @typedef {{ name: string, description: string, input_schema: Record<string, any> | null, side_effects: string }} Tool
 *
 * What a tool has answered.
 * @typedef {Record<string, any>} Result
 *
 * How a call is run. `idempotency_key` has 1 to 255 visible ASCII characters, and calls of one tool with one key run
 * once; `timeout_ms` is for each attempt, `deadline_ms` for the whole call.
 * @typedef {{ idempotency_key?: string, timeout_ms?: number, deadline_ms?: number }} CallMeta
 *
 * `after`: the call waits for these calls and no others. `signal`: cancels the call, which then rejects at once with the
 * reason of the signal. `onDelta`: takes output that comes before the end.
 * @typedef {object} CallOptions
 * @property {Iterable<string | Call>} [after]
 * @property {CallMeta} [meta]
 * @property {AbortSignal} [signal]
 * @property {(text: string) => void} [onDelta]
 *
 * @typedef {readonly [tool: string, args?: Record<string, any>, options?: CallOptions]} BatchEntry
 *
 * What a supervisor has said.
 * @typedef {Record<string, any>} Message
 *
 * A line that waits to be written, and the call that it opens.
 * @typedef {object} Outgoing
 * @property {Buffer} line
 * @property {Call} [call]
 * @property {(text: string) => void} [onDelta]
 * @property {(error?: Error | null) => void} [written]
 * @property {(error: Error) => void} [failed]
 */

// Errors

/** Everything that happens to calls, except for wrong use of this module. */
export class AgentError extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message);
    this.name = new.target.name;
  }
}

/**
 * A call has failed. Its message is written for a model to read.
 *
 *     try {
 *       await tools.call("Read", { path: "/etc/passwd" });
 *     } catch (error) {
 *       if (!(error instanceof FsDenied)) throw error;
 *       console.log(error.slug, error.code, error.message);
 *     }
 */
export class ToolError extends AgentError {
  /**
   * @param {string} message
   * @param {{ slug: string, tool: string, callId: string, meta: Record<string, any>, note?: string }} about
   */
  constructor(message, { slug, tool, callId, meta, note }) {
    super(message);
    /** What a model has to be told beside the message: that a person has changed the arguments. */
    this.note = note;
    /** One of five words; each has a subclass. A later word is a `ToolFailed`. */
    this.slug = slug;
    this.tool = tool;
    this.callId = callId;
    /** What the supervisor knows of the call: attempts, times, and the fields below. */
    this.meta = meta;
    /** @type {string | undefined} The precise error code, such as `timeout`. */
    this.code = meta.code;
    /** @type {string | undefined} Whether the call has had an effect: `not_started`, `failed` or `unknown`. */
    this.outcome = meta.outcome;
    /** Whether the same call may succeed later. */
    this.retryable = meta.retryable === true;
    /** @type {number | undefined} */
    this.retryAfterMs = meta.retry_after_ms;
  }
}

/** There is no tool of this name. */
export class ToolNotFound extends ToolError {}

/** This agent may not use the tool, or policy, a budget or a person has refused the call. */
export class PermissionDenied extends ToolError {}

/** This agent may not use that path. */
export class FsDenied extends ToolError {}

/** The arguments are not what the tool takes. */
export class InvalidArgs extends ToolError {}

/** The tool said no, timed out, was cancelled, or broke. */
export class ToolFailed extends ToolError {}

/** A line was refused and did nothing, or the supervisor has sent what is no line of the protocol. */
export class ProtocolError extends AgentError {
  /**
   * @param {string} message
   * @param {number} [line]
   */
  constructor(message, line) {
    super(message);
    this.line = line;
  }
}

/** The supervisor has closed the channel. A call that was waiting may have had its effect. */
export class Disconnected extends AgentError {}

/** The agent is to end: it can call nothing more, may say bye, and has this time to exit. */
export class Shutdown extends Disconnected {
  /** @param {number} graceMs */
  constructor(graceMs) {
    super(`this agent is to end, and has ${graceMs} ms to exit`);
    this.graceMs = graceMs;
  }
}

const BY_SLUG = new Map([
  ["tool_not_found", ToolNotFound],
  ["permission_denied", PermissionDenied],
  ["fs_denied", FsDenied],
  ["invalid_args", InvalidArgs],
  ["tool_failed", ToolFailed],
]);

// Calls

/** @type {(call: Call, end: { result: Result } | { error: unknown }, more?: { meta?: Record<string, any>, note?: string }) => void} */
let settle;
/** @type {(call: Call, text: string) => void} */
let pass;
/** @type {(call: Call, act: () => void) => void} */
let atEnd;

/**
 * A call: awaited like a promise of its result, and iterated for the output that comes before its end.
 *
 *     const agent = await connect({ deltas: true });
 *     const call = agent.tools.call("Build", { target: "all" });
 *     for await (const text of call) console.log(text);
 *     const result = await call;
 *
 * @implements {PromiseLike<Result>}
 */
export class Call {
  #agent;
  #done = false;
  /** @type {string[]} */
  #texts = [];
  /** @type {(() => void)[]} */
  #waiting = [];
  /** @type {(() => void)[]} */
  #atEnd = [];
  /** @type {(result: Result) => void} */
  #resolve = () => {};
  /** @type {(error: unknown) => void} */
  #reject = () => {};
  /** @type {Promise<Result>} */
  #promise;
  /** @type {{ stack?: string }} */
  #caller = {};

  static {
    settle = (call, end, { meta = {}, note } = {}) => {
      if (call.#done) return;
      call.#done = true;
      call.meta = meta;
      call.note = note;
      if ("result" in end) call.#resolve(end.result);
      else call.#reject(call.#fromCaller(end.error));
      call.#wake();
      for (const act of call.#atEnd) act();
    };
    atEnd = (call, act) => {
      call.#atEnd.push(act);
    };
    pass = (call, text) => {
      if (call.#done) return;
      call.#texts.push(text);
      call.#wake();
    };
  }

  /**
   * @param {Agent} agent
   * @param {string} id
   * @param {string} tool
   */
  constructor(agent, id, tool) {
    this.#agent = agent;
    this.id = id;
    this.tool = tool;
    /** @type {Record<string, any>} What the supervisor knows of the call, once it has been answered. */
    this.meta = {};
    /** @type {string | undefined} What a model has to be told beside the result: that who approved it has changed the arguments. */
    this.note = undefined;
    this.#promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    Error.captureStackTrace(this.#caller, Tools.prototype.call);
  }

  /** Whether it has ended. */
  get done() {
    return this.#done;
  }

  /** Asks to stop the call, which is still answered: with its result, if that comes first, or by `ToolFailed`. */
  cancel() {
    this.#agent._cancel(this);
  }

  /**
   * @template [T=Result]
   * @template [E=never]
   * @param {((result: Result) => T | PromiseLike<T>) | null} [fulfilled]
   * @param {((error: any) => E | PromiseLike<E>) | null} [rejected]
   * @returns {Promise<T | E>}
   */
  then(fulfilled, rejected) {
    return this.#promise.then(fulfilled, rejected);
  }

  /**
   * @template [E=never]
   * @param {((error: any) => E | PromiseLike<E>) | null} [rejected]
   */
  catch(rejected) {
    return this.#promise.catch(rejected);
  }

  /** @param {(() => void) | null} [ended] */
  finally(ended) {
    return this.#promise.finally(ended);
  }

  /** The pieces of output as they come. Ends when the call ends, and throws if it has failed. */
  async *[Symbol.asyncIterator]() {
    for (let next = 0; ; next += 1) {
      while (next === this.#texts.length && !this.#done) await new Promise((wake) => this.#waiting.push(() => wake(null)));
      if (next === this.#texts.length) break;
      yield this.#texts[next];
    }
    await this.#promise;
  }

  #wake() {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /**
   * An answer is read in nobody's name; whoever looks for the failed call wants the place where it was made.
   * @param {unknown} error
   */
  #fromCaller(error) {
    if (error instanceof AgentError) error.stack = `${error.name}: ${error.message}${this.#caller.stack?.replace(/^.*/, "") ?? ""}`;
    return error;
  }
}

/**
 * The tools of an agent: a map from names to descriptions, and the ways to call them.
 * @extends {Map<string, Tool>}
 */
export class Tools extends Map {
  #agent;

  /**
   * @param {Agent} agent
   * @param {Iterable<Tool>} tools
   */
  constructor(agent, tools) {
    super(Array.from(tools, (tool) => [tool.name, tool]));
    this.#agent = agent;
  }

  /**
   * Calls a tool. What is sent at once runs together as far as that has the effect of one call after another.
   *
   *     const { content } = await tools.call("Read", { path: "/a" }, { signal: AbortSignal.timeout(5_000) });
   *
   *     const write = tools.call("Write", { path: "/b", content });
   *     const make = tools.call("Shell", { command: "make" }, { after: [write], meta: { timeout_ms: 60_000 } });
   *
   * Rejects with a `ToolError` if the call fails, with `Disconnected` or its subclass `Shutdown` if the supervisor has
   * gone, with `ProtocolError` if it refuses the line, and with `TypeError` or `RangeError` if the call makes no line.
   *
   * @param {string} tool
   * @param {Record<string, any>} [args]
   * @param {CallOptions} [options]
   */
  call(tool, args = {}, options = {}) {
    return this.#agent._open(tool, args, options);
  }

  /**
   * Sends calls together, and resolves to what each has come to, in the order of the calls.
   *
   *     const [a, b] = await tools.batch([["Read", { path: "/a" }], ["Read", { path: "/b" }]]);
   *
   * A failed call is a `ToolError` (or a `ProtocolError`) in the list; with `throws` the first one is thrown, when all
   * calls have ended. `Disconnected` is always thrown, and so is the reason of a signal.
   *
   * @param {Iterable<BatchEntry>} calls
   * @param {{ throws?: boolean }} [options]
   * @returns {Promise<(Result | ToolError | ProtocolError)[]>}
   */
  async batch(calls, { throws = false } = {}) {
    const started = Array.from(calls, ([tool, args, options]) => this.call(tool, args, options));
    const ended = await Promise.allSettled(started);
    return ended.map((one) => {
      if (one.status === "fulfilled") return one.value;
      const told = one.reason instanceof ToolError || one.reason instanceof ProtocolError;
      if (throws || !told) throw one.reason;
      return one.reason;
    });
  }
}

// The agent

/**
 * A call that has not been answered.
 * @typedef {{ call: Call, cancelled: boolean, onDelta?: (text: string) => void }} Pending
 */

/** This program as its supervisor knows it. Made by `connect`. */
export class Agent {
  #input;
  #write;
  #deltas;
  #ids = 0;
  #full = false;
  /** @type {Outgoing[]} As long as there are promises of calls for which there is no room. */
  #queue = [];
  /** @type {Map<string, Pending>} Calls that were written and not answered. */
  #pending = new Map();
  /** @type {(() => AgentError) | undefined} Why nothing can be sent and nothing comes. */
  #gone;
  /** @type {Shutdown | undefined} */
  #shutdown;
  #saidBye = false;
  /** @type {{ resolve: (welcome: Message) => void, reject: (error: Error) => void } | undefined} */
  #greeting;

  /** Its path from the root, such as `root/writer`. */
  name = "";
  /** @type {any} What it was started with. */
  input;
  /** @type {Tools} */
  tools = new Tools(this, []);

  /**
   * @param {Channel} channel
   * @param {boolean} deltas
   */
  constructor({ input, output, write }, deltas) {
    this.#input = input;
    this.#write = write;
    this.#deltas = deltas;
    const lines = new Splitter((line) => this.#receive(line));
    input.on("data", (piece) => lines.feed(piece));
    input.once("end", () => this.#finish(() => new Disconnected("the supervisor has closed the channel")));
    input.once("close", () => this.#finish(() => new Disconnected("the supervisor has closed the channel")));
    input.on("error", (error) => this.#finish(() => new Disconnected(`the channel cannot be read: ${error.message}`)));
    output.on("drain", () => {
      this.#full = false;
      this.#pump();
    });
    // Answers that were sent before are still read, up to the end.
    output.on("error", (error) => this.#lose(() => new Disconnected(`the supervisor does not read any more: ${error.message}`)));
  }

  /** Says hello, and waits for the welcome. */
  async _greet() {
    const welcome = await new Promise((resolve, reject) => {
      this.#greeting = { resolve, reject };
      // The line feed ends what was written before the agent has connected, and keeps it apart from the hello.
      this.#send({ line: Buffer.from("\n") });
      this.#send({ line: encode({ op: "hello", protocol: 1, meta: true, deltas: this.#deltas }) });
    });
    this.name = welcome.agent;
    this.input = welcome.input;
    this.tools = new Tools(this, welcome.tools ?? []);
    return this;
  }

  /** Set when the agent is to end: what any further call would reject with. */
  get stopping() {
    return this.#shutdown && new Shutdown(this.#shutdown.graceMs);
  }

  /** Calls that follow wait until all that came before have been answered. */
  turnEnd() {
    return this.#sent({ op: "turn_end" });
  }

  /**
   * Says that the agent asks for nothing more, and what its result is. Calls in flight are still answered. The program
   * should then exit.
   * @param {any} [result]
   */
  async bye(result) {
    const sent = this.#sent({ op: "bye", result });
    this.#saidBye = true;
    await sent;
  }

  /**
   * @param {string} tool
   * @param {Record<string, any>} args
   * @param {CallOptions} options
   */
  _open(tool, args, { after, meta, signal, onDelta }) {
    this.#ids += 1;
    const call = new Call(this, String(this.#ids), tool);
    try {
      if (onDelta && !this.#deltas) throw new TypeError("nothing comes before the end of a call: connect with { deltas: true }");
      signal?.throwIfAborted();
      // Who has been answered is done, and the supervisor does not remember it for ever.
      const waits = after && Array.from(after).filter((one) => typeof one === "string" || !one.done);
      const names = waits?.map((one) => (typeof one === "string" ? one : one.id));
      const line = encode({ op: "tool_call", tool_call_id: call.id, tool, args, after: names, meta });
      this.#check("tool_call");
      if (signal) this.#heed(signal, call);
      this.#send({ line, call, onDelta, failed: (error) => settle(call, { error }) });
    } catch (error) {
      settle(call, { error });
    }
    return call;
  }

  /** @param {Call} call */
  _cancel(call) {
    const one = this.#pending.get(call.id);
    if (one) this.#cancelSent(one);
    else this.#cancelQueued(call);
  }

  /** @param {Pending} one */
  #cancelSent(one) {
    if (one.cancelled) return;
    one.cancelled = true;
    this.#put(encode({ op: "cancel", tool_call_id: one.call.id }));
  }

  /** @param {Call} call */
  #cancelQueued(call) {
    const place = this.#queue.findIndex((one) => one.call === call);
    if (place < 0) return;
    this.#queue.splice(place, 1);
    const about = { slug: "tool_failed", tool: call.tool, callId: call.id, meta: { code: "cancelled", outcome: "not_started" } };
    settle(call, { error: new ToolFailed("the call was cancelled before it was sent", about) }, about);
    this.#keepAlive();
  }

  /**
   * @param {AbortSignal} signal
   * @param {Call} call
   */
  #heed(signal, call) {
    const abort = () => this.#abandon(call, signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    atEnd(call, () => signal.removeEventListener("abort", abort));
  }

  /**
   * Ends a call for whoever waits for it, and cancels it.
   * @param {Call} call
   * @param {unknown} error
   */
  #abandon(call, error) {
    settle(call, { error });
    call.cancel();
  }

  // Sending

  /**
   * Throws why a line of this operation cannot be sent, if it is so.
   * @param {string} op
   */
  #check(op) {
    if (this.#saidBye) throw new ProtocolError("this agent has said bye, and can send nothing more");
    // Its input is closed as soon as all is answered, and its bye is heard even then.
    if (this.#shutdown && op === "bye") return;
    const error = this.stopping ?? this.#gone?.();
    if (error) throw error;
  }

  /** @param {Message} message */
  #sent(message) {
    return /** @type {Promise<void>} */ (
      new Promise((resolve, failed) => {
        this.#check(message.op);
        const written = (/** @type {Error | null | undefined} */ error) => (error ? failed(error) : resolve());
        this.#send({ line: encode(message), written, failed });
      })
    );
  }

  /** @param {Outgoing} outgoing */
  #send(outgoing) {
    this.#queue.push(outgoing);
    this.#pump();
  }

  #pump() {
    while (!this.#full && this.#queue.length > 0) {
      const [next] = this.#queue;
      if (next.call && this.#pending.size >= IN_FLIGHT_MAX) break;
      this.#queue.shift();
      this.#put(next.line, next);
    }
    this.#keepAlive();
  }

  /**
   * @param {Buffer} line
   * @param {Partial<Outgoing>} [outgoing]
   */
  #put(line, { call, onDelta, written } = {}) {
    if (call) this.#pending.set(call.id, { call, cancelled: false, onDelta });
    this.#full = !this.#write(line, written);
  }

  /** The program must not exit while it waits for an answer, and must be able to when it does not. */
  #keepAlive() {
    const waits = this.#greeting || this.#pending.size > 0 || this.#queue.length > 0;
    const input = /** @type {Partial<Socket>} */ (this.#input);
    if (waits) input.ref?.();
    else input.unref?.();
  }

  // Receiving

  /** @param {Buffer} line */
  #receive(line) {
    if (line.every((byte) => byte <= 0x20)) return;
    /** @type {Message} */
    let message;
    try {
      message = JSON.parse(UTF8.decode(line));
      if (typeof message.op !== "string") throw new TypeError("it has no op");
    } catch {
      const text = line.toString("latin1", 0, 200);
      this.#finish(() => new ProtocolError(`the supervisor has sent a line that is none of the protocol: ${text}`));
      return;
    }
    if (message.op === "tool_response") this.#takeResponse(message);
    else if (message.op === "tool_delta") this.#takeDelta(message);
    else if (message.op === "welcome") this.#takeWelcome(message);
    else if (message.op === "error") this.#takeError(message);
    else if (message.op === "shutdown") this.#takeShutdown(message);
    // A later version may have more operations, which an agent that did not ask for them need not know.
  }

  /** @param {Message} message */
  #takeResponse({ tool_call_id: id, ok, result, error: slug, message, meta = {}, note }) {
    const one = this.#answered(id);
    if (!one) return warn(`an answer to a call that does not wait for one: ${id}`);
    if (ok) return settle(one.call, { result: result ?? {} }, { meta, note });
    const Kind = BY_SLUG.get(slug) ?? ToolFailed;
    settle(one.call, { error: new Kind(message, { slug, tool: one.call.tool, callId: id, meta, note }) }, { meta, note });
  }

  /** @param {Message} message */
  #takeShutdown({ grace_ms: graceMs }) {
    this.#shutdown = new Shutdown(graceMs);
    this.#dropQueue(() => new Shutdown(graceMs));
  }

  /** @param {Message} message */
  #takeDelta({ tool_call_id: id, text }) {
    const one = this.#pending.get(id);
    if (!one) return;
    pass(one.call, text);
    if (one.call.done) return;
    try {
      one.onDelta?.(text);
    } catch (error) {
      this.#abandon(one.call, error);
    }
  }

  /** @param {Message} message */
  #takeWelcome(message) {
    this.#greeting?.resolve(message);
    this.#greeting = undefined;
    this.#keepAlive();
  }

  /** @param {Message} message */
  #takeError({ message, line, refused, tool_call_id: id }) {
    const error = new ProtocolError(message, line);
    if (refused === "hello" && this.#greeting) return this.#finish(() => error);
    // A cancel that is refused names a call as well, which is then still answered.
    const one = refused === "tool_call" ? this.#answered(id) : undefined;
    if (!one) return warn(`line ${line} was refused: ${message}`);
    settle(one.call, { error });
  }

  /** @param {string} id */
  #answered(id) {
    const one = this.#pending.get(id);
    this.#pending.delete(id);
    this.#pump();
    return one;
  }

  // Ending

  /**
   * Nothing can be sent from now on; the first reason stays.
   * @param {() => AgentError} error
   */
  #lose(error) {
    this.#gone ??= error;
    this.#dropQueue(this.#gone);
  }

  /** @param {() => AgentError} error */
  #dropQueue(error) {
    for (const { failed } of this.#queue.splice(0)) failed?.(error());
    this.#keepAlive();
  }

  /**
   * No answer comes any more.
   * @param {() => AgentError} error
   */
  #finish(error) {
    this.#lose(error);
    this.#greeting?.reject(error());
    this.#greeting = undefined;
    for (const { call } of this.#pending.values()) settle(call, { error: this.stopping ?? error() });
    this.#pending.clear();
    this.#keepAlive();
  }
}

const UTF8 = new TextDecoder("utf-8", { fatal: true });

// Half a character is written as an escape, and only that is; a backslash of the text itself is doubled.
const HALF = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;

/** @param {Message} message */
function encode(message) {
  const text = JSON.stringify(message);
  if (HALF.test(text)) throw new TypeError("a text has half a character in it, which UTF-8 cannot express");
  const line = Buffer.from(`${text}\n`);
  if (line.length > LINE_MAX + 1) throw new RangeError(`a line has at most ${LINE_MAX} bytes, and this one has ${line.length - 1}`);
  return line;
}

/** @param {string} text */
function warn(text) {
  process.stderr.write(`toolyard-agent: ${text}\n`);
}

/** Makes lines of pieces; what stands after the last line feed waits for its end. */
class Splitter {
  #take;
  /** @type {Buffer[]} */
  #rest = [];

  /** @param {(line: Buffer) => void} take */
  constructor(take) {
    this.#take = take;
  }

  /** @param {Buffer} piece */
  feed(piece) {
    let start = 0;
    for (let end = piece.indexOf(10); end >= 0; end = piece.indexOf(10, start)) {
      this.#rest.push(piece.subarray(start, end));
      start = end + 1;
      this.#take(Buffer.concat(this.#rest.splice(0)));
    }
    if (start < piece.length) this.#rest.push(piece.subarray(start));
  }
}

// The channel

/**
 * What an agent reads and writes; `write` is that of `output`, which the program's own code may not have any more.
 * @typedef {object} Channel
 * @property {import("node:stream").Readable} input
 * @property {import("node:stream").Writable} output
 * @property {(line: Buffer, written?: (error?: Error | null) => void) => boolean} write
 */

let taken = false;

/** @returns {Channel} */
function takeChannel() {
  const channel = process.env.TOOLYARD_CHANNEL ?? "stdio";
  if (channel !== "stdio" && channel !== "fd3") throw new Error(`there is no channel '${channel}': it is 'stdio' or 'fd3'`);
  if (channel === "stdio" && process.stdin.isTTY) {
    throw new Error("nobody supervises this program: start it with `toolyard supervise -- node agent.mjs`");
  }
  if (taken) throw new Error("this program is connected already, and has only one supervisor");
  taken = true;
  return channel === "stdio" ? takeStdio() : takeSocket();
}

/** @returns {Channel} */
function takeStdio() {
  const { stdin: input, stdout: output, stderr } = process;
  const write = output.write.bind(output);
  // The program waits for `drain` of a stream that it does not write to, so it is always told to go on.
  output.write = (/** @type {[any]} */ ...args) => (stderr.write(...args), true);
  output.end = (/** @type {any[]} */ ...args) => {
    const [chunk, encoding] = args.filter((one) => typeof one !== "function");
    if (chunk !== undefined) stderr.write(chunk, encoding);
    args.find((one) => typeof one === "function")?.();
    return output;
  };
  return { input, output, write: (line, written) => write(line, written) };
}

/** @returns {Channel} */
function takeSocket() {
  // Half open: the supervisor may close our input before our last line.
  const socket = new Socket({ fd: 3, readable: true, writable: true, allowHalfOpen: true });
  return { input: socket, output: socket, write: (line, written) => socket.write(line, written) };
}

/**
 * Takes the channel, says hello, and waits for the welcome.
 *
 * With `deltas` output that comes before the end of a call is passed on: to `onDelta`, and to whoever iterates a call.
 * The channel is what `TOOLYARD_CHANNEL` says, or two streams that are given.
 *
 * @param {object} [options]
 * @param {boolean} [options.deltas]
 * @param {import("node:stream").Readable} [options.input]
 * @param {import("node:stream").Writable} [options.output]
 */
export async function connect({ deltas = false, input, output } = {}) {
  const given = input && output && { input, output, write: output.write.bind(output) };
  return new Agent(given || takeChannel(), deltas)._greet();
}

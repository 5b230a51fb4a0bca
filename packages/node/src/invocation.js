// Functions that run: from their `tool_invoke` to the one line that answers it.

import { fieldsOf } from "./content.js";
import { CallError, Disconnected, ToolError } from "./errors.js";

/** Characters of what is wrong with an answer, which may name a place deep in it. */
const REASON_MAX = 300;

/** What a function may know of its invocation, and do within it. */
export class Context {
  #host;
  #id;
  #controller = new AbortController();

  constructor(message, host) {
    this.#host = host;
    this.#id = message.call_id;
    this.callId = message.tool_call_id ?? message.call_id;
    this.tool = message.tool;
    this.session = message.session;
    this.agent = message.agent;
    this.turn = message.turn ?? undefined;
    this.attempt = message.attempt ?? 1;
    this.key = message.key ?? undefined;
    this.deadline = message.deadline_ms == null ? undefined : new Date(Date.now() + message.deadline_ms);
  }

  get signal() {
    return this.#controller.signal;
  }

  emit(text) {
    if (!this.signal.aborted) this.#host.answer({ op: "tool_delta", call_id: this.#id, text });
  }

  async dispatch(calls) {
    const { outcomes } = await this.#host.dispatchWithin(this.#id, calls);
    return outcomes.map((outcome) => (outcome.ok ? outcome.value : outcome.error));
  }

  async call(tool, args, options) {
    const [outcome] = await this.dispatch([[tool, args, options]]);
    if (outcome instanceof CallError) throw outcome;
    return outcome;
  }

  _cancel() {
    this.#controller.abort(new DOMException("the call was cancelled, or its time is over", "AbortError"));
  }
}

/** The functions that are registered, and their invocations. */
export class Runner {
  #host;
  #tools = new Map();
  #running = new Map();

  constructor(host) {
    this.#host = host;
  }

  get size() {
    return this.#running.size;
  }

  /** Takes a function, and gives what takes it away again, for the one that it has replaced. */
  add(tool) {
    const before = this.#tools.get(tool.name);
    this.#tools.set(tool.name, tool);
    return () => {
      if (this.#tools.get(tool.name) !== tool) return;
      if (before) this.#tools.set(tool.name, before);
      else this.#tools.delete(tool.name);
    };
  }

  remove(name) {
    this.#tools.delete(name);
  }

  has(name) {
    return this.#tools.has(name);
  }

  /** Runs a function, and answers when it has ended, also after a cancel: what has to come after it waits for that. */
  async invoke(message) {
    const id = message.call_id;
    const context = new Context(message, this.#host);
    this.#running.set(id, context);
    const answer = await this.#answer(message, context);
    this.#running.delete(id);
    this.#send(id, answer);
    this.#host.held();
  }

  cancel(id) {
    this.#running.get(id)?._cancel();
    // It may never end, and this program need not stay alive for it.
    this.#running.delete(id);
    this.#host.held();
  }

  /** Nobody waits for any of them. */
  cancelAll() {
    for (const context of this.#running.values()) context._cancel();
    this.#running.clear();
  }

  async #answer({ tool: name, args }, context) {
    const tool = this.#tools.get(name);
    if (!tool) return { op: "tool_failed", kind: "internal", message: `there is no function for the tool '${name}'` };
    try {
      return { op: "tool_result", ...fieldsOf(await tool.run(args, context)) };
    } catch (error) {
      try {
        return this.#failure(error, name, context);
      } catch {
        // It is one that cannot even be shown.
        return this.#failure(new Error("what it has thrown cannot be shown"), name, context);
      }
    }
  }

  #failure(error, name, { signal }) {
    const failed = { op: "tool_failed", message: String(error?.message ?? error) };
    if (error instanceof ToolError) {
      return { ...failed, kind: error.kind, retry_after_ms: error.retryAfterMs, outcome: error.outcome };
    }
    if (error instanceof CallError) return { ...failed, kind: "execution_error" };
    if (signal.aborted) return { ...failed, kind: "cancelled" };
    if (error instanceof Disconnected) return { ...failed, kind: "internal", outcome: "unknown" };
    this.#host.log(`the tool ${name} has failed: ${error?.stack ?? error}`, "error");
    // Nobody has said that nothing was changed before it failed.
    return { ...failed, kind: "internal", outcome: "unknown" };
  }

  /** The engine has refused the answer of an invocation, which still needs one. */
  refused(id, reason) {
    this.#host.log(`what a tool has given was refused: ${reason}`, "error");
    this.#host.answer(unsent(id, reason));
  }

  #send(id, answer) {
    try {
      // The id tells which answer the engine has refused.
      this.#host.answer({ ...answer, id, call_id: id });
    } catch (error) {
      if (!(error instanceof Disconnected)) this.#host.answer(unsent(id, error.message));
    }
  }
}

/** The answer in place of one that cannot be sent, or that was refused. */
function unsent(id, reason) {
  return { op: "tool_failed", call_id: id, kind: "output_invalid", message: `the result cannot be sent: ${reason}`.slice(0, REASON_MAX) };
}

// Functions that run: from their `tool_invoke` to the one line that answers it.

import { fieldsOf } from "./content.js";
import { CallError, Disconnected, ToolError } from "./errors.js";

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

  add(tool) {
    this.#tools.set(tool.name, tool);
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
    this.#send(id, answer, context);
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
      return this.#failure(error, name, context);
    }
  }

  #failure(error, name, { signal }) {
    const failed = { op: "tool_failed", message: String(error?.message ?? error) };
    if (error instanceof ToolError) {
      return { ...failed, kind: error.kind, retry_after_ms: error.retryAfterMs, outcome: error.outcome };
    }
    if (error instanceof CallError) return { ...failed, kind: "execution_error" };
    if (signal.aborted) return { ...failed, kind: "cancelled" };
    this.#host.log(`the tool ${name} has failed: ${error?.stack ?? error}`, "error");
    // Nobody has said that nothing was changed before it failed.
    return { ...failed, kind: "internal", outcome: "unknown" };
  }

  #send(id, answer, context) {
    try {
      this.#host.answer({ ...answer, call_id: id });
    } catch (error) {
      if (error instanceof Disconnected) return;
      const told = new ToolError(`the result cannot be sent: ${error.message}`, { kind: "output_invalid" });
      this.#host.answer({ ...this.#failure(told, "", context), call_id: id });
    }
  }
}

// A session: whose calls share their lease, budgets, keys and approvals.

import { Closed } from "./errors.js";
import { unwrap } from "./outcome.js";

/** Makes calls, and runs those of a model. Made by `engine.session(…)`; `backend` is a program or a server. */
export class Session {
  #backend;
  #place;
  #closed = false;

  constructor(backend, place) {
    this.#backend = backend;
    this.#place = place;
  }

  get name() {
    return this.#place.session;
  }

  get agent() {
    return this.#place.agent ?? "root";
  }

  async dispatch(response, { from, to, signal, onDelta } = {}) {
    signal?.throwIfAborted();
    await this.#backend.room();
    signal?.throwIfAborted();
    return finish(this.start(response, { from, to, deltas: Boolean(onDelta) }), signal, onDelta);
  }

  start(response, { from, to, deltas = false } = {}) {
    return this.#backend.respond(this.#open(), response, { from, to, deltas });
  }

  async call(tool, args, { signal, onDelta, ...options } = {}) {
    const [outcome] = await this.outcomes([[tool, args, options]], { signal, onDelta });
    return unwrap(outcome);
  }

  async batch(calls, { throws = false, ...options } = {}) {
    const outcomes = await this.outcomes(calls, options);
    return outcomes.map((outcome) => (throws ? unwrap(outcome) : outcome.ok ? outcome.value : outcome.error));
  }

  async outcomes(calls, { signal, onDelta } = {}) {
    signal?.throwIfAborted();
    await this.#backend.room();
    signal?.throwIfAborted();
    const turn = this.#backend.run(this.#open(), [...calls], { deltas: Boolean(onDelta) });
    return (await finish(turn, signal, onDelta)).outcomes;
  }

  turn({ deltas = false } = {}) {
    return this.#backend.grow(this.#open(), { deltas });
  }

  async fork({ name, capabilities, onlyTools } = {}) {
    const agent = await this.#backend.fork(this.#open(), { name, capabilities, only_tools: onlyTools });
    return new Session(this.#backend, { ...this.#open(), agent });
  }

  async definitions(to = "neutral") {
    return this.#backend.definitions(this.#open(), to);
  }

  async close() {
    if (this.agent !== "root") return;
    this.#closed = true;
    await this.#backend.closeSession(this.#place);
  }

  #open() {
    // A call would open another session of this name, without the bounds of this one.
    if (this.#closed) throw new Closed(`the session ${this.name} was closed`);
    return this.#place;
  }
}

if (Symbol.asyncDispose) {
  Session.prototype[Symbol.asyncDispose] = Session.prototype.close;
}

/** Waits for a turn; a signal, or an error of `onDelta`, cancels it. */
async function finish(turn, signal, onDelta) {
  const ended = follow(turn, onDelta);
  if (!signal) return ended;
  let abort;
  const aborted = new Promise((_, reject) => (abort = () => reject(signal.reason)));
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([ended, aborted]);
  } catch (error) {
    turn.cancel();
    ended.catch(() => {});
    throw error;
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

async function follow(turn, onDelta) {
  try {
    if (onDelta) for await (const delta of turn) onDelta(delta);
  } catch (error) {
    turn.cancel();
    throw error;
  }
  return await turn;
}

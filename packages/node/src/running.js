// Turns and calls that run.

import { unwrap } from "./outcome.js";

/** A turn that is open: iterated for the output that comes before its end. */
class OpenTurn {
  #core;
  #state;

  constructor(core, state) {
    this.#core = core;
    this.#state = state;
  }

  get done() {
    return this.#state.done;
  }

  get _ended() {
    return this.#state.ended;
  }

  cancel(callId) {
    this.#core.cancel(this.#state, callId);
  }

  [Symbol.asyncIterator]() {
    if (!this.#state.deltas) throw new TypeError("nothing was asked for that comes before the end: start it with { deltas: true }");
    return this.#state.deltas[Symbol.asyncIterator]();
  }

  _add(calls) {
    return this.#core.add(this.#state, calls).map((sent) => new PendingCall(this.#core, this.#state, sent));
  }

  _end() {
    this.#core.endTurn(this.#state);
  }
}

/** A turn that was sent: awaited for its end. */
export class RunningTurn extends OpenTurn {
  then(fulfilled, rejected) {
    return this._ended.then(fulfilled, rejected);
  }

  catch(rejected) {
    return this._ended.catch(rejected);
  }

  finally(ended) {
    return this._ended.finally(ended);
  }
}

/** A call that was sent: awaited for what the tool gives. */
export class PendingCall {
  #core;
  #state;
  #promise;

  constructor(core, state, { id, tool, outcome }) {
    this.#core = core;
    this.#state = state;
    this.id = id;
    this.tool = tool;
    this.outcome = outcome;
    this.#promise = outcome.then(unwrap);
    // Who waits for the whole turn need not wait for each call.
    this.#promise.catch(() => {});
  }

  then(fulfilled, rejected) {
    return this.#promise.then(fulfilled, rejected);
  }

  catch(rejected) {
    return this.#promise.catch(rejected);
  }

  finally(ended) {
    return this.#promise.finally(ended);
  }

  cancel() {
    this.#core.cancel(this.#state, this.id);
  }
}

/**
 * A turn to which calls are added while others run, as when a model is still writing. It is no promise: what awaited it
 * would wait for an end that nobody has asked for.
 */
export class GrowingTurn extends OpenTurn {
  #ended = false;

  call(tool, args, options) {
    const [call] = this.add([[tool, args, options]]);
    return call;
  }

  add(calls) {
    if (this.#ended) throw new TypeError("nothing can be added to this turn any more");
    return this._add(calls);
  }

  /** Nothing more is added; resolves to what became of all calls. */
  async end() {
    if (!this.#ended) {
      this.#ended = true;
      if (!this.done) this._end();
    }
    return await this._ended;
  }
}

// Sessions in a program that this one has started.

import { Disconnected } from "./errors.js";
import { GrowingTurn, RunningTurn } from "./running.js";

export class LocalBackend {
  #core;

  constructor(core) {
    this.#core = core;
  }

  room() {
    return this.#core.room();
  }

  respond(place, response, options) {
    return new RunningTurn(this.#core, this.#core.respond(place, response, options));
  }

  run(place, calls, { deltas }) {
    return new RunningTurn(this.#core, this.#core.begin(place, calls, { more: false, deltas }).turn);
  }

  grow(place, { deltas }) {
    return new GrowingTurn(this.#core, this.#core.begin(place, [], { more: true, deltas }).turn);
  }

  async fork(place, fields) {
    return (await this.#core.request("fork", { ...place, ...fields })).agent;
  }

  async definitions(place, to) {
    return (await this.#core.request("definitions", { ...place, to })).definitions;
  }

  async closeSession({ session }) {
    try {
      await this.#core.request("close", { session });
    } catch (error) {
      // It is closed already, or went with the engine.
      if (!(error instanceof Disconnected) && error.code !== "not_found") throw error;
    }
  }
}

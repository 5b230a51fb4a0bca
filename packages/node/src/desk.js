// Where questions wait for the program's own `approve`.

import { Disconnected } from "./errors.js";

/** A yes, with other arguments than those of the call. They are checked as the call's own were. */
export class Edit {
  constructor(args) {
    this.arguments = args;
  }
}

/** A no, with a reason that the model reads. */
export class Deny {
  constructor(reason) {
    this.reason = reason;
  }
}

/** May this call run? */
export class Question {
  #controller = new AbortController();

  constructor(message) {
    this.requestId = message.request_id;
    this.session = message.session;
    this.agent = message.agent;
    this.turn = message.turn ?? undefined;
    this.callId = message.call_id;
    this.tool = message.tool;
    this.sideEffects = message.side_effects;
    this.arguments = message.arguments;
    this.digest = message.digest;
    this.changes = message.changes ?? undefined;
    this.sheet = message.sheet ?? [];
    this.always = message.always;
    this.links = message.links ?? [];
    this.refused = message.refused ?? undefined;
    this.asked = new Date(message.asked_ms);
    this.expires = new Date(message.expires_ms);
  }

  /** Aborted when it need not be answered any more. */
  get signal() {
    return this.#controller.signal;
  }

  toString() {
    return this.sheet.map(({ label, lines }) => `${label}: ${lines.join("\n  ")}`).join("\n");
  }

  _end() {
    this.#controller.abort(new DOMException("the question need not be answered any more", "AbortError"));
  }
}

/** The fields of an answer; throws for what is none, so that nothing but a yes is a yes. */
export function decision(answer) {
  if (answer instanceof Edit) return { decision: "allow", arguments: answer.arguments };
  if (answer instanceof Deny) return { decision: "deny", reason: answer.reason };
  if (answer === true || answer === false) return { decision: answer ? "allow" : "deny" };
  if (answer === "always" || answer === "never") return { decision: answer };
  throw new TypeError('an answer is true, false, "always", "never", new Edit(…) or new Deny(…)');
}

/** Asks `approve` about each question. Whatever goes wrong with it is a no. */
export class Desk {
  #approve;
  #host;
  #open = new Map();

  constructor(approve, host) {
    this.#approve = approve;
    this.#host = host;
  }

  async ask(message) {
    const question = new Question(message);
    this.#open.set(question.requestId, question);
    let given;
    try {
      given = decision(await this.#approve(question));
    } catch (error) {
      if (question.signal.aborted) return;
      this.#host.log(`nobody could be asked about a call of ${question.tool}, which is denied: ${error?.stack ?? error}`, "error");
      given = decision(new Deny("nobody could be asked"));
    }
    await this.#send(question, given);
  }

  end({ request_id: id }) {
    this.#open.get(id)?._end();
    this.#open.delete(id);
  }

  endAll() {
    for (const id of [...this.#open.keys()]) this.end({ request_id: id });
  }

  async #send(question, given) {
    if (question.signal.aborted) return;
    try {
      await this.#host.request("confirmation", { request_id: question.requestId, digest: question.digest, ...given });
    } catch (error) {
      if (error instanceof Disconnected) return;
      if (error instanceof TypeError || error instanceof RangeError) {
        return this.#send(question, decision(new Deny("the answer could not be sent")));
      }
      // Somebody else was first, or the question comes again.
      this.#host.log(`an answer about a call of ${question.tool} does not count: ${error.message}`, "info");
    }
  }
}

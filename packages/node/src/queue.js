// Things that come one after another, for `for await`.

/** Keeps at most `room` things that nobody has taken yet; the oldest are missed, and `missed` says what stands for them. */
export class Queue {
  #things = [];
  #waiting = [];
  #ended = false;
  #room;
  #missed;

  constructor({ room = 10_000, missed = () => undefined } = {}) {
    this.#room = room;
    this.#missed = missed;
  }

  put(thing) {
    if (this.#ended) return;
    if (this.#things.length >= this.#room) {
      const stands = this.#missed(thing);
      if (stands === undefined) this.#things.shift();
      else {
        this.#things = [];
        thing = stands;
      }
    }
    this.#things.push(thing);
    this.#wake();
  }

  end() {
    this.#ended = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator]() {
    for (;;) {
      while (this.#things.length === 0 && !this.#ended) await new Promise((wake) => this.#waiting.push(wake));
      if (this.#things.length === 0) return;
      yield this.#things.shift();
    }
  }

  #wake() {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}

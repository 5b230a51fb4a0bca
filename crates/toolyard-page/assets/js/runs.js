// The runs of a batch, which follow one another: which of them goes on, and since when. Pure.

/** Told of every call of one batch; costs the same however many there are. */
export class Runs {
  constructor() {
    Object.assign(this, { open: new Map(), first: 0, last: 0, since: 0 });
  }

  received(run) {
    this.open.set(run, (this.open.get(run) ?? 0) + 1);
    this.first = Math.min(this.first, run);
    this.last = Math.max(this.last, run);
  }

  ended(run, at) {
    this.open.set(run, this.open.get(run) - 1);
    while (this.first < this.last && !this.open.get(this.first)) {
      this.first += 1;
      this.since = at;
    }
  }

  /** Since when a call of this run that has not ended waits for no earlier run; null if it still does. */
  ready(run) {
    return run <= this.first ? this.since : null;
  }
}

// Which stretch of time is seen, and where a moment lies in it. Pure.

/** A window on the time from `start` to `end`, `width` pixels wide. */
export class Scale {
  constructor(start, end, width) {
    this.width = width;
    this.whole(start, end);
    this.fit();
  }

  /** Sets the whole time; what is seen stays, unless all of it was. */
  whole(start, end) {
    const fitted = this.isFitted;
    [this.start, this.end] = [start, Math.max(end, start + 10)];
    if (fitted) this.fit();
  }

  get isFitted() {
    return this.from === this.start && this.to === this.end;
  }

  /** Shows all of it. */
  fit() {
    [this.from, this.to] = [this.start, this.end];
  }

  /** Shows this stretch, as far as it exists. */
  show(from, to) {
    const span = Math.min(Math.max(to - from, 10), this.end - this.start);
    this.from = Math.min(Math.max(from, this.start), this.end - span);
    this.to = this.from + span;
    if (span >= this.end - this.start) this.fit();
  }

  /** Shows more (above 1) or less time around this moment. */
  zoom(factor, around = (this.from + this.to) / 2) {
    this.show(around - (around - this.from) * factor, around + (this.to - around) * factor);
  }

  /** Moves by this part of what is seen. */
  pan(part) {
    const by = (this.to - this.from) * part;
    this.show(this.from + by, this.to + by);
  }

  x(moment) {
    return ((moment - this.from) / (this.to - this.from)) * this.width;
  }

  at(x) {
    return this.from + (x / this.width) * (this.to - this.from);
  }

  /** Round moments to mark, counted from the start: [{moment, since, step}]. */
  ticks() {
    const about = ((this.to - this.from) / Math.max(this.width, 1)) * 110;
    const ten = 10 ** Math.floor(Math.log10(Math.max(about, 1)));
    const step = [1, 2, 5, 10].map((times) => times * ten).find((times) => times >= about) ?? 10 * ten;
    const ticks = [];
    for (let since = Math.ceil((this.from - this.start) / step) * step; since <= this.to - this.start; since += step) {
      ticks.push({ moment: this.start + since, since, step });
    }
    return ticks;
  }
}

// The calls of a turn as rows of bars over one axis of time. Only the rows that are seen are drawn.

import { ROW, bars, segmentAt } from "./bars.js";
import { draw, el } from "./el.js";
import { List } from "./list.js";
import { mark, stateWords } from "./marks.js";
import { reason, reasonWords, standing } from "./reasons.js";
import { WAIT_MIN, segmentsOf } from "./segments.js";
import { brief, tick } from "./units.js";

const REACH = 5;

/** The rows, the axis above them, and the lines behind them. */
export class Timeline {
  constructor({ tip, onCall, onScale }) {
    // Why a call waited is read from all calls beside it; of one that has ended it does not change.
    Object.assign(this, { tip, onScale, known: new WeakMap() });
    this.list = new List({
      label: "Calls, with what each did and what it waited for. Plus and minus zoom, left and right move, f shows the time of the rows in view, 0 shows all.",
      class: "calls",
      rowHeight: ROW,
      render: (call, row, index) => this.row(call, row, index),
      onActive: onCall,
      keys: (event) => this.key(event),
    });
    this.axis = el("div", { class: "axis", "aria-hidden": "true" });
    this.lines = draw("svg", {});
    this.pointer = draw("line", { class: "pointer", y1: 0, y2: "100%", visibility: "hidden" });
    this.grid = el("div", { class: "grid", "aria-hidden": "true" }, this.lines);
    this.node = el("div", { class: "track" }, this.axis, this.grid, this.list.node);
    this.list.node.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.list.node.addEventListener("pointermove", (event) => this.hover(event));
    this.list.node.addEventListener("pointerleave", () => this.leave());
    this.list.node.addEventListener("dblclick", () => this.change(() => this.scale.fit()));
    new ResizeObserver(() => this.resize()).observe(this.axis);
  }

  /** Shows these calls on this scale. */
  show(calls, scale, now, happenings) {
    Object.assign(this, { scale, now, happenings });
    scale.width = this.axis.clientWidth || 600;
    this.ruler();
    this.list.setItems(calls);
  }

  /** Shows the time in which the calls that are seen did something. */
  fitRows() {
    const calls = [...this.list.rows.keys()].map((index) => this.list.items[index]);
    const stretches = calls.flatMap((call) => segmentsOf(call, this.now).filter(({ kind }) => kind !== "blocked" && kind !== "setup"));
    if (stretches.length === 0) return;
    const [from, to] = [Math.min(...stretches.map((one) => one.from)), Math.max(...stretches.map((one) => one.to))];
    const margin = (to - from) * 0.06;
    this.change(() => this.scale.show(from - margin, to + margin * 2));
  }

  resize() {
    if (!this.scale) return;
    this.scale.width = this.axis.clientWidth;
    this.redraw();
  }

  /** Draws everything on a scale that has changed. */
  redraw() {
    this.ruler();
    this.list.soon();
  }

  change(work) {
    work();
    this.redraw();
    this.onScale();
  }

  ruler() {
    const width = this.scale.width;
    const ticks = this.scale.ticks();
    this.axis.replaceChildren(...ticks.map(({ moment, since, step }) => {
      const x = this.scale.x(moment);
      const label = el("span", { class: x < 20 ? "first" : x > width - 30 ? "last" : null }, tick(since, step));
      label.style.left = `${x}px`;
      return label;
    }));
    const line = (kind) => (moment) => {
      const x = Math.round(this.scale.x(moment)) + 0.5;
      return draw("line", { class: kind, x1: x, x2: x, y1: 0, y2: "100%" });
    };
    const seen = this.happenings.map((event) => event.mono_us).filter((at) => at >= this.scale.from && at <= this.scale.to);
    this.lines.replaceChildren(
      ...ticks.map(({ moment }) => moment).map(line("tick")),
      ...seen.map(line("happening")),
      this.pointer,
    );
  }

  row(call, row, index) {
    const above = this.list.items[index - 1];
    row.toggleAttribute("data-first", Boolean(above) && (above.run !== call.run || above.batch !== call.batch));
    const first = call.turn.calls[0];
    const nested = first && call.batch !== first.batch ? el("span", { class: "nested" }, "↳") : null;
    const name = el("span", { class: "label" }, mark(call.state), nested, el("span", { class: "tool" }, call.tool || "…"), el("span", { class: "id" }, call.id));
    const svg = draw("svg", { class: "bars", "aria-hidden": "true" }, bars(call, this.scale, this.now));
    row.replaceChildren(name, svg, el("span", { class: "unseen" }, this.words(call)));
  }

  /** What happened to a call, in words: what a screen reader says after its name. */
  words(call) {
    if (!call.end) return this.said(call);
    if (!this.known.has(call)) this.known.set(call, this.said(call));
    return this.known.get(call);
  }

  said(call) {
    const waits = segmentsOf(call, this.now).filter((segment) => segment.kind !== "setup" && segment.to - segment.from >= WAIT_MIN);
    return [stateWords(call.state), standing(call), ...waits.map((segment) => reasonWords(call, segment))].join(". ");
  }

  hover(event) {
    const box = this.axis.getBoundingClientRect();
    const x = event.clientX - box.left;
    const row = event.target.closest?.(".row");
    if (!row || x < 0 || x > box.width) {
      this.leave();
      return;
    }
    const moment = this.scale.at(x);
    this.pointer.setAttribute("x1", x);
    this.pointer.setAttribute("x2", x);
    this.pointer.setAttribute("visibility", "visible");
    const call = this.list.items[Number(row.dataset.index)];
    const reach = this.scale.at(REACH) - this.scale.at(0);
    const segment = call && segmentAt(call, moment, reach, this.now);
    this.tip.show(event.clientX, event.clientY, segment ? told(call, segment) : this.happening(moment, reach));
  }

  happening(moment, reach) {
    const near = this.happenings.find((event) => Math.abs(event.mono_us - moment) <= reach);
    return [brief(moment - this.scale.start), near ? happeningWords(near) : "since the turn started"];
  }

  leave() {
    this.tip.hide();
    this.pointer.setAttribute("visibility", "hidden");
  }

  wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const x = event.clientX - this.axis.getBoundingClientRect().left;
      this.change(() => this.scale.zoom(Math.exp(event.deltaY * 0.006), this.scale.at(Math.max(0, x))));
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) && !this.scale.isFitted) {
      event.preventDefault();
      this.change(() => this.scale.pan(event.deltaX / this.scale.width));
    }
  }

  key(event) {
    const work = {
      "+": () => this.scale.zoom(0.6),
      "=": () => this.scale.zoom(0.6),
      "-": () => this.scale.zoom(1 / 0.6),
      0: () => this.scale.fit(),
      f: () => this.fitRows(),
      ArrowLeft: () => this.scale.pan(-0.2),
      ArrowRight: () => this.scale.pan(0.2),
    }[event.key];
    if (work) this.change(work);
    return Boolean(work);
  }
}

function told(call, segment) {
  const [title, more] = reason(call, segment);
  return [`${title}, ${brief(segment.to - segment.from)}`, more];
}

/** The state of a breaker in words. */
const state = (name) => String(name).replaceAll("_", " ");

/** What happened to the engine, in words. */
export function happeningWords(event) {
  switch (event.event) {
    case "breaker.transition":
      return `the breaker of ${event.tool_name ?? event.backend ?? event.sandbox} went from ${state(event.from)} to ${state(event.to)}`;
    case "pool.resized":
      return `pool ${event.class} was ${event.from} wide and is ${event.to} now`;
    case "policy.changed":
      return `policy ${event.version} came into force`;
    case "engine.drain":
      return `the engine shuts down: ${event.step}`;
    case "zombies.released":
      return `what ${event.count} zombies of ${event.tool_name} held was released`;
    default:
      return event.event;
  }
}

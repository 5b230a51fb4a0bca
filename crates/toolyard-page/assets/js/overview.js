// The shape of a turn: how many calls ran and how many waited at each moment. Dragging over it chooses what is seen.

import { draw, el } from "./el.js";

const HIGH = 100;
const BINS = 360;

/** The strip above the timeline. */
export class Overview {
  constructor(onChange) {
    this.onChange = onChange;
    this.svg = draw("svg", { viewBox: `0 0 ${BINS} ${HIGH}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    this.peak = el("span", { class: "peak" });
    this.node = el("div", { class: "overview", "aria-hidden": "true", on: {
      pointerdown: (event) => this.grab(event),
      dblclick: () => { this.scale.fit(); this.onChange(); },
    } }, this.svg, this.peak);
    this.waiting = draw("path", { class: "waiting" });
    this.running = draw("path", { class: "running" });
    this.before = draw("rect", { class: "outside", y: 0, height: HIGH });
    this.after = draw("rect", { class: "outside", y: 0, height: HIGH });
    this.svg.append(this.waiting, this.running, this.before, this.after);
  }

  /** Draws how many calls ran and waited. */
  shape(calls, scale, now) {
    this.scale = scale;
    const { running, waiting, most } = loads(calls, scale, now);
    // Each on a scale of its own: thousands may wait for the few that run.
    this.running.setAttribute("d", area(running, 62));
    this.waiting.setAttribute("d", area(waiting, 74));
    this.peak.textContent = most > 1 ? `up to ${most} at once` : "";
    this.window();
  }

  /** Draws which part is seen. */
  window() {
    const { start, end, from, to } = this.scale;
    const x = (moment) => ((moment - start) / (end - start)) * BINS;
    this.before.setAttribute("width", Math.max(0, x(from)));
    this.after.setAttribute("x", x(to));
    this.after.setAttribute("width", Math.max(0, BINS - x(to)));
  }

  grab(event) {
    const box = this.node.getBoundingClientRect();
    const at = (x) => this.scale.start + ((x - box.left) / box.width) * (this.scale.end - this.scale.start);
    const begin = event.clientX;
    this.node.setPointerCapture(event.pointerId);
    const move = (moved) => {
      if (Math.abs(moved.clientX - begin) < 4) return;
      this.scale.show(Math.min(at(begin), at(moved.clientX)), Math.max(at(begin), at(moved.clientX)));
      this.onChange();
    };
    this.node.addEventListener("pointermove", move);
    const done = () => this.node.removeEventListener("pointermove", move);
    this.node.addEventListener("pointerup", done, { once: true });
    this.node.addEventListener("pointercancel", done, { once: true });
  }
}

/** Counts per bin, by what begins and ends in it. */
function loads(calls, scale, now) {
  const bin = (moment) => Math.min(BINS, Math.max(0, Math.floor(((moment - scale.start) / (scale.end - scale.start)) * BINS)));
  const [runs, waits] = [new Float64Array(BINS + 2), new Float64Array(BINS + 2)];
  const edges = [];
  for (const call of calls) {
    const end = call.end?.mono_us ?? now;
    const called = call.called?.mono_us ?? end;
    waits[bin(call.received)] += 1;
    waits[bin(called)] -= 1;
    if (!call.called) continue;
    runs[bin(called)] += 1;
    runs[bin(end) + 1] -= 1;
    edges.push([called, 1], [end, -1]);
  }
  return { running: sums(runs), waiting: sums(waits), most: peak(edges) };
}

function sums(changes) {
  let sum = 0;
  return Array.from(changes.subarray(0, BINS), (change) => (sum += change));
}

function peak(edges) {
  edges.sort((one, other) => one[0] - other[0] || one[1] - other[1]);
  let [now, most] = [0, 0];
  for (const [, change] of edges) most = Math.max(most, (now += change));
  return most;
}

function area(values, high) {
  const top = Math.max(1, ...values);
  const y = (value) => (HIGH - (value / top) * high).toFixed(1);
  const points = values.map((value, bin) => `L${bin} ${y(value)}L${bin + 1} ${y(value)}`);
  return `M0 ${HIGH}${points.join("")}L${BINS} ${HIGH}Z`;
}

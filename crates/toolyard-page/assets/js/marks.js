// The marks of states. Each has a shape of its own.

import { draw } from "./el.js";

const SHAPES = {
  ok: "M2 7.5 5.5 11 12 3.5",
  failed: "M3 3l8 8M11 3l-8 8",
  refused: "M7 1.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M3.2 10.8l7.6-7.6",
  suspended: "M4.5 3v8M9.5 3v8",
  running: "M3.5 2.5v9l8-4.5z",
  asks: "M4.5 4.6a2.5 2.5 0 1 1 3.6 2.2c-.8.4-1.1.8-1.1 1.7M7 11.7v.1",
  waits: "M7 1.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M7 4.2V7l2 1.4",
};

const WORDS = {
  ok: "ok",
  failed: "failed",
  refused: "refused",
  suspended: "suspended",
  running: "running",
  asks: "waits for an answer",
  waits: "waits",
};

/** The mark of a state, silent because words stand beside it. */
export function mark(state) {
  const path = draw("path", { d: SHAPES[state] ?? SHAPES.waits });
  return draw("svg", { class: "mark", viewBox: "0 0 14 14", "data-state": state, "aria-hidden": "true" }, path);
}

/** The state in words. */
export function stateWords(state) {
  return WORDS[state] ?? state;
}

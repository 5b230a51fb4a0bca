// The patterns that bars are filled with, and a swatch of each kind of stretch.

import { draw, el } from "./el.js";

/** Names and order of the kinds, for legends. */
export const KINDS = [
  ["blocked", "earlier calls"],
  ["queued", "queued"],
  ["asks", "question"],
  ["ran", "ran"],
  ["retried", "retried"],
  ["backoff", "backoff"],
  ["failed", "failed"],
];

/** The patterns; once in a document. */
export function patterns() {
  const pattern = (id, line) => draw(
    "pattern",
    { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    draw("line", { class: line, x1: 0, x2: 0, y1: 0, y2: 6 }),
  );
  const defs = draw("defs", {}, pattern("hatch", "pattern-hatch"), pattern("stripes", "pattern-stripes"));
  return draw("svg", { class: "unseen", width: 0, height: 0, "aria-hidden": "true" }, defs);
}

/** A small picture of a kind of stretch. */
export function swatch(kind) {
  const line = ["blocked", "setup", "backoff"].includes(kind);
  const shape = line
    ? draw("line", { class: `seg-${kind}`, x1: 0, x2: 20, y1: 6, y2: 6 })
    : draw("rect", { class: `seg-${kind}`, x: 1, y: 1, width: 18, height: 10, rx: 2 });
  const cross = kind === "failed" ? draw("path", { class: "seg-cross", d: "M13 3l6 6m0-6l-6 6" }) : null;
  return draw("svg", { class: "swatch", viewBox: "0 0 20 12", "aria-hidden": "true" }, shape, cross);
}

/** All kinds, in a row. */
export function legend() {
  return el("div", { class: "legend" }, KINDS.map(([kind, name]) => el("span", {}, swatch(kind), name)));
}

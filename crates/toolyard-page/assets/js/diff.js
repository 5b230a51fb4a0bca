// A diff, line by line: added and removed differ by sign, by words for screen readers, and by colour.

import { el } from "./el.js";

const KINDS = [
  ["+++", "head"],
  ["---", "head"],
  ["@@", "place"],
  ["+", "added"],
  ["-", "removed"],
];

/** A diff text as lines. */
export function diff(text) {
  let inHunk = false;
  const lines = text.replace(/\n$/, "").split("\n").map((line) => {
    let kind = KINDS.find(([start]) => line.startsWith(start))?.[1] ?? "same";
    // Within a hunk, `--- a` is the line `-- a`, removed.
    if (kind === "head" && inHunk) kind = line.startsWith("+") ? "added" : "removed";
    inHunk ||= kind === "place";
    const said = kind === "added" || kind === "removed" ? el("span", { class: "unseen" }, `${kind}: `) : null;
    return el("span", { class: `line ${kind}` }, said, `${line}\n`);
  });
  return el("pre", { class: "diff", tabindex: 0, role: "region", "aria-label": "Changes" }, lines);
}

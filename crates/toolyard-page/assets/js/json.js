// JSON as text that can be read: indented, with names in a colour of their own.

import { el } from "./el.js";

/** Nodes for a JSON text; a text that is no JSON, as one that is cut, stays as it is. */
export function json(text) {
  let value;
  try {
    value = typeof text === "string" ? JSON.parse(text) : text;
  } catch {
    return [text];
  }
  const lines = JSON.stringify(value, null, 2).split("\n");
  return lines.flatMap((line, index) => {
    const end = index + 1 < lines.length ? "\n" : "";
    const name = /^(\s*)("(?:[^"\\]|\\.)*")(: .*)$/.exec(line);
    return name ? [name[1], el("span", { class: "key" }, name[2]), name[3] + end] : [line + end];
  });
}

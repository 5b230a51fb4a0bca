// The name, with its sign.

import { draw, el } from "./el.js";

/** The sign: three bars. */
export function brand() {
  const sign = draw("svg", { viewBox: "0 0 32 32", "aria-hidden": "true" },
    draw("rect", { width: 32, height: 32, rx: 8 }),
    draw("path", { d: "M7 10h12M11 16h14M9 22h8" }));
  return el("span", { class: "brand" }, sign, "Toolyard");
}

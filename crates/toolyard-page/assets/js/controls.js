// Buttons and choices.

import { draw, el } from "./el.js";

/** Exclusive choices as buttons that stay pressed. */
export function choice(label, options, chosen, onChoose) {
  const buttons = options.map(([value, name]) => el("button", {
    type: "button",
    "aria-pressed": String(value === chosen),
    on: { click: () => choose(value) },
  }, name));
  const choose = (value) => {
    options.forEach(([other], index) => buttons[index].setAttribute("aria-pressed", String(other === value)));
    onChoose(value);
  };
  return el("div", { class: "choice", role: "group", "aria-label": label }, buttons);
}

const PICTURES = {
  in: "M8 3v10M3 8h10",
  out: "M3 8h10",
  fit: "M2 5V2h3M11 2h3v3M14 11v3h-3M5 14H2v-3",
  rows: "M2 3h12M2 13h12M4 6.5 2 8l2 1.5M12 6.5 14 8l-2 1.5M2 8h12",
  close: "M4 4l8 8M12 4l-8 8",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  moon: "M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7z",
};

/** A button that is a picture. */
export function iconButton(picture, label, onClick) {
  const path = draw("path", { d: PICTURES[picture], fill: "none", stroke: "currentColor", "stroke-width": 1.5, "stroke-linecap": "round", "stroke-linejoin": "round" });
  return el("button", { type: "button", class: "bare icon", "aria-label": label, title: label, on: { click: onClick } },
    draw("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, path));
}

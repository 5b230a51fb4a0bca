// A pool: how wide it is, how much of it is taken, and how many wait.

import { iconButton } from "./controls.js";
import { el } from "./el.js";

const SLOTS_MAX = 48;

/** The card of a pool. */
export function pool({ class: kind, state, width, running, queued }, operate) {
  const path = `/pools/${encodeURIComponent(kind)}`;
  const resize = (by) => () => operate("PATCH", path, { width: width + by });
  const control = (button, name) => {
    button.dataset.control = `${kind}-${name}`;
    return button;
  };
  const fixed = kind === "serial";
  const narrower = control(iconButton("out", `Narrow pool ${kind}`, resize(-1)), "narrower");
  narrower.disabled = width <= 1;
  const paused = state === "paused";
  const pause = control(el("button", { type: "button", class: "bare", "aria-label": `${paused ? "Resume" : "Pause"} pool ${kind}`, on: { click: () => operate("PATCH", path, { paused: !paused }) } }, paused ? "Resume" : "Pause"), "pause");
  return el("div", { class: "card pool", "data-state": state },
    el("h2", {}, kind, state === "running" ? null : el("small", {}, state)),
    el("p", { class: "big" }, el("b", {}, String(running)), fixed ? " running" : ` of ${width}`),
    fixed ? null : slots(running, width),
    el("div", { class: "foot" }, el("span", { class: "grow" }, queued > 0 ? `${queued} queued` : "none queued"),
      fixed ? null : narrower,
      fixed ? null : control(iconButton("in", `Widen pool ${kind}`, resize(1)), "wider"),
      pause));
}

function slots(running, width) {
  if (width > SLOTS_MAX) {
    const fill = el("span", {});
    fill.style.width = `${(Math.min(running, width) / width) * 100}%`;
    return el("div", { class: "meter", "aria-hidden": "true" }, fill);
  }
  return el("div", { class: "slots", "aria-hidden": "true" }, Array.from({ length: width }, (_, index) => el("i", { class: index < running ? "taken" : null })));
}

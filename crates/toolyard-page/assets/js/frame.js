// The frame of the live page: the bar with its tabs, the banner, and the views.

import { brand } from "./brand.js";
import { el, setText } from "./el.js";
import { themeSwitch } from "./theme.js";

const CONNECTION = {
  connecting: "Connecting…",
  live: "Live",
  lost: "No connection; trying again",
  paused: "Paused while hidden",
};

/** The frame around these views: [{name, title, node}]. */
export class Frame {
  constructor(views) {
    this.views = views;
    this.state = el("span", { class: "state", role: "status" });
    this.banner = el("p", { class: "banner", role: "alert", hidden: true });
    this.said = { engine: "", problem: "" };
    this.badge = el("span", { class: "badge", hidden: true });
    this.tabs = views.map(({ name, title }) => el("button", {
      type: "button",
      role: "tab",
      id: `tab-${name}`,
      "aria-controls": `view-${name}`,
      on: { click: () => this.open(name) },
    }, title, name === "questions" ? this.badge : null));
    for (const { name, node } of views) {
      node.id = `view-${name}`;
      node.setAttribute("role", "tabpanel");
      node.setAttribute("aria-labelledby", `tab-${name}`);
    }
    const tablist = el("div", { role: "tablist", "aria-label": "Views", on: { keydown: (event) => this.key(event) } }, this.tabs);
    this.node = el("div", { class: "app" },
      el("div", {}, el("header", { class: "bar" }, brand(), tablist, el("span", { class: "about" }, this.state), themeSwitch()), this.banner),
      el("main", { class: "views" }, views.map(({ node }) => node)));
    this.open(views[0].name);
  }

  /** Shows a view. */
  open(name) {
    this.current = name;
    this.complain("");
    this.views.forEach((view, index) => {
      const chosen = view.name === name;
      view.node.hidden = !chosen;
      this.tabs[index].setAttribute("aria-selected", String(chosen));
      this.tabs[index].tabIndex = chosen ? 0 : -1;
    });
    this.onOpen?.(name);
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const index = this.views.findIndex(({ name }) => name === this.current);
    const next = (index + step + this.views.length) % this.views.length;
    this.open(this.views[next].name);
    this.tabs[next].focus();
    event.preventDefault();
  }

  connection(state) {
    this.state.dataset.state = state;
    setText(this.state, CONNECTION[state] ?? state);
  }

  questions(number) {
    this.badge.hidden = number === 0;
    setText(this.badge, String(number));
    document.title = number > 0 ? `(${number}) Toolyard` : "Toolyard";
  }

  /** Says how the engine is, or nothing. */
  tell(engine) {
    this.say({ engine });
  }

  /** Says why something could not be done, until something else is done or another view is opened. */
  complain(problem) {
    this.say({ problem });
  }

  say(words) {
    Object.assign(this.said, words);
    const text = this.said.problem || this.said.engine;
    this.banner.hidden = !text;
    setText(this.banner, text);
  }
}

/** A page that says one thing. */
export function onlyNote(title, text) {
  document.body.replaceChildren(el("div", { class: "app" },
    el("header", { class: "bar" }, brand(), el("span", { class: "about" }), themeSwitch()),
    el("main", { class: "note", role: "alert" }, el("h1", {}, title), text)));
}

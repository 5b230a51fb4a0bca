// One turn: its figures, its shape, its timeline.

import { choice, iconButton } from "./controls.js";
import { el, setText } from "./el.js";
import { figures } from "./figures.js";
import { ORDERS, SHOWN, chosenCalls } from "./filter.js";
import { Overview } from "./overview.js";
import { legend } from "./patterns.js";
import { Scale } from "./scale.js";
import { Timeline } from "./timeline.js";
import { moment } from "./units.js";

/** What the shapes mean, and which keys there are. */
function footer() {
  const keys = [["↑ ↓", "calls"], ["← →", "time"], ["+ −", "zoom"], ["f", "rows"], ["0", "all"]];
  const hints = keys.map(([key, what]) => el("span", {}, el("kbd", {}, key), what));
  return el("footer", {}, legend(), el("div", { class: "keys", "aria-hidden": "true" }, hints));
}

/** The view of a turn; `now(turn)` is the moment at which what is open ends, in microseconds of its life. */
export class TurnView {
  constructor({ tip, now, onCall }) {
    Object.assign(this, { now, turn: null, filter: { shown: "all", order: "called", text: "" } });
    this.title = el("h1", {});
    this.where = el("span", { class: "where" });
    this.figures = el("p", { class: "figures" });
    this.offers = el("span", { class: "offers" });
    this.overview = new Overview(() => this.timeline.redraw());
    this.timeline = new Timeline({ tip, onCall, onScale: () => this.overview.window() });
    this.node = el("section", { class: "turn", "aria-label": "Turn" },
      el("header", {}, this.title, this.where, this.figures, this.offers),
      this.tools(),
      this.overview.node,
      this.timeline.node,
      footer());
  }

  tools() {
    const change = (name) => (value) => {
      this.filter[name] = value;
      this.draw();
    };
    const search = el("input", {
      type: "search",
      placeholder: "Tool, id or error",
      "aria-label": "Show only calls with this tool, id or error",
      on: { input: () => change("text")(search.value) },
    });
    const zoom = (factor) => () => this.timeline.change(() => this.scale.zoom(factor));
    return el("div", { class: "tools" },
      choice("Which calls", SHOWN, "all", change("shown")),
      el("span", { class: "wide" }, choice("In which order", ORDERS, "called", change("order"))),
      search,
      el("span", { class: "gap" }),
      el("span", { class: "zoom" },
        iconButton("out", "Show more time", zoom(1 / 0.5)),
        iconButton("in", "Show less time", zoom(0.5)),
        iconButton("rows", "Show the time of the rows in view", () => this.timeline.fitRows()),
        iconButton("fit", "Show the whole turn", () => this.timeline.change(() => this.scale.fit()))));
  }

  /** Shows a turn from now on. */
  show(turn) {
    if (this.turn === turn) return;
    this.turn = turn;
    this.drawn = -1;
    this.scale = null;
    this.timeline.list.node.scrollTop = 0;
    this.timeline.list.active = -1;
    this.draw();
  }

  /** Draws it again if it has changed or goes on. */
  refresh() {
    if (this.turn && (this.turn.version !== this.drawn || this.turn.ended === null)) this.draw();
  }

  draw() {
    const turn = this.turn;
    if (!turn) return;
    this.drawn = turn.version;
    const now = this.now(turn);
    const end = turn.ended ?? now;
    if (this.scale) this.scale.whole(turn.started, end);
    else this.scale = new Scale(turn.started, end, 600);
    this.head(turn, now);
    this.overview.shape(turn.calls, this.scale, now);
    this.timeline.show(chosenCalls(turn.calls, this.filter, now), this.scale, now, turn.session.life.happenings);
  }

  /** Offers what can be done with the turn, if anything; drawn only when that changes, to keep the focus. */
  offer(turn) {
    const key = `${turn.session.name}/${turn.number}/${turn.ended}/${turn.cancelled}`;
    if (this.offered === key) return;
    this.offered = key;
    this.offers.replaceChildren(...[this.actions?.(turn)].filter(Boolean));
  }

  head(turn, now) {
    const { session } = turn;
    setText(this.title, `Turn ${turn.number}`);
    const began = session.life.wallBase === null ? "" : `, ${moment(session.life.wallBase + turn.started / 1000)}`;
    const agent = turn.agent === "root" ? "" : ` / ${turn.agent}`;
    setText(this.where, `${session.name}${agent}${began}`);
    this.figures.replaceChildren(...figures(turn, now));
    this.offer(turn);
  }
}

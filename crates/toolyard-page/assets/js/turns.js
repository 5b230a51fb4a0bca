// Outline, turn and details side by side.

import { Details } from "./details.js";
import { el } from "./el.js";
import { Outline } from "./outline.js";
import { TurnView } from "./turn-view.js";

/** The view of all turns of a log. */
export class Turns {
  constructor({ log, tip, now, onTurn, onCall }) {
    Object.assign(this, { log, now, onTurn, onCall, chosen: false });
    this.outline = new Outline({ onTurn: (turn) => this.open(turn) });
    this.turnView = new TurnView({ tip, now, onCall: (call) => this.detail(call) });
    this.details = new Details(() => this.close());
    this.empty = el("div", { class: "note" }, el("h1", {}, "No turn yet"), "What agents do appears here as it happens.");
    this.node = el("div", { class: "view turns" }, this.outline.node, this.empty);
  }

  /** Shows a turn, because somebody chose it. */
  open(turn) {
    this.chosen = true;
    this.show(turn);
  }

  show(turn) {
    if (this.turnView.turn === turn) return;
    this.detail(null);
    this.node.replaceChildren(this.outline.node, this.turnView.node, this.details.node);
    this.turnView.show(turn);
    this.outline.choose(turn);
    this.onTurn?.(turn);
  }

  /** Lets go of what it shows, because the log was cleared. */
  forget() {
    this.detail(null);
    this.chosen = false;
    this.turnView.turn = null;
    this.node.replaceChildren(this.outline.node, this.empty);
  }

  detail(call) {
    if (call) this.onCall?.(call);
    this.node.dataset.detail = call ? "open" : "";
    this.details.show(call, call ? this.now(call.turn) : 0);
  }

  close() {
    this.detail(null);
    this.turnView.timeline.list.node.focus();
  }

  /** Draws what has changed. Until somebody chooses a turn, the newest one is shown once the one before has ended. */
  refresh() {
    this.outline.refresh(this.log);
    const newest = this.log.turnsInOrder.at(-1);
    const goesOn = this.turnView.turn?.ended === null;
    if (!this.chosen && newest && !goesOn) this.show(newest);
    this.turnView.refresh();
    const { call } = this.details;
    if (!call) return;
    if (call.end) this.onCall?.(call);
    this.details.refresh(this.now(call.turn));
  }
}

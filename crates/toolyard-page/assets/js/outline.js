// The outline: sessions, under them their agents, under these their turns; the newest session first.

import { el } from "./el.js";
import { turnWords } from "./figures.js";
import { List } from "./list.js";
import { mark, stateWords } from "./marks.js";

const ROW_HIGH = 28;

/** The tree beside the view. */
export class Outline {
  constructor({ onTurn }) {
    this.list = new List({
      label: "Sessions and turns",
      role: "tree",
      rowHeight: ROW_HIGH,
      render: row,
      same: (one, other) => one.key === other.key,
      onActive: (item) => item.turn && onTurn(item.turn),
      onOpen: (item) => item.turn && onTurn(item.turn),
    });
    this.node = el("nav", { class: "outline", "aria-label": "Sessions" }, el("h2", {}, "Sessions"), this.list.node);
    this.drawn = -1;
  }

  /** Draws the log; the rows only, if no session, agent or turn was added. */
  refresh(log) {
    if (this.drawn === log.shape) {
      this.list.soon();
      return;
    }
    this.drawn = log.shape;
    this.list.setItems(itemsOf(log));
  }

  /** Makes this turn the active row. */
  choose(turn) {
    const index = this.list.items.findIndex((item) => item.turn === turn);
    if (index >= 0 && index !== this.list.active) this.list.activate(index, true);
  }
}

function itemsOf(log) {
  const items = [];
  for (const life of log.lives.toReversed()) {
    for (const [key, session] of [...life.sessions].toReversed()) items.push(...ofSession(life, key, session, log));
  }
  return items;
}

function ofSession(life, key, session, log) {
  const [turns, items] = [[...session.turns.values()], []];
  const id = `${life.number}/${key}`;
  const more = log.lives.length > 1 ? `life ${life.number}` : session.closed ? "closed" : "";
  items.push({ key: id, level: 1, kind: "session", name: session.name, more });
  for (const { path, joined } of session.agents.values()) {
    const own = turns.filter((turn) => turn.agent === path);
    const depth = path.split("/").length - 1;
    if (depth > 0) items.push({ key: `${id}/${path}`, level: 2, kind: "agent", name: path, more: joined ? "ended" : "" });
    for (const turn of own) items.push({ key: `${id}//${turn.number}`, level: depth > 0 ? 3 : 2, kind: "turn", turn });
  }
  return items;
}

function row(item, node) {
  node.setAttribute("aria-level", item.level);
  node.dataset.kind = item.kind;
  if (item.kind !== "turn") {
    node.replaceChildren(el("span", { class: "name" }, item.name), el("span", { class: "more" }, item.more));
    return;
  }
  const { turn } = item;
  const words = turnWords(turn);
  const state = el("span", { class: "unseen" }, stateWords(turn.state));
  node.replaceChildren(mark(turn.state), el("span", { class: "name" }, `Turn ${turn.number} `, state), el("span", { class: "more" }, words));
}

// What the engine does now: pools, who waits for what, rates, budgets, breakers, and sessions as trees of agents.

import { el, keepFocus } from "./el.js";
import { budgetRow, rateRow } from "./limits.js";
import { mark, stateWords } from "./marks.js";
import { pool } from "./pool.js";
import { brief, count } from "./units.js";
import { breakerName, missingWords, whoWords } from "./waiting.js";

/** How many sessions and budgets are shown. */
const SESSIONS_MAX = 50;
const BUDGETS_MAX = 20;

/** The view of the present. `operate(method, path, body)` changes something and loads the status again. */
export class Now {
  constructor({ log, operate, onTurn }) {
    Object.assign(this, { log, operate, onTurn, status: null });
    this.pools = el("section", { class: "pools", "aria-label": "Pools" });
    this.waiting = el("ul", { class: "rows" });
    this.breakers = el("ul", { class: "rows" });
    this.rates = el("ul", { class: "rows" });
    this.budgets = el("ul", { class: "rows" });
    this.sessions = el("ul", { class: "rows" });
    this.version = el("p", { class: "where" });
    const card = (title, content) => el("section", { class: "card" }, el("h2", {}, title), content);
    this.node = el("div", { class: "view now", hidden: true }, el("div", { class: "inner" },
      el("header", {}, el("h1", {}, "Now"), this.version),
      this.pools,
      el("div", { class: "columns" }, card("Who waits for what", this.waiting), card("Sessions", this.sessions), card("Rates", this.rates), card("Budgets", this.budgets), card("Breakers", this.breakers))));
  }

  /** Draws this status. */
  show(status) {
    this.status = status;
    const { version, questions, parked, draining } = status;
    const words = [`toolyard ${version}`, count(status.sessions, "session"), questions > 0 && count(questions, "question"), parked > 0 && `${parked} parked`, draining && "shutting down"];
    this.version.replaceChildren(words.filter(Boolean).join(" · "));
    keepFocus(this.node, () => {
      this.pools.replaceChildren(...status.pools.map((state) => pool(state, this.operate)));
      this.waiting.replaceChildren(...rows(status.waiting, waitingRow, "Nobody waits."));
      this.rates.replaceChildren(...rows(status.rates, rateRow, "No tool has a rate."));
      this.budgets.replaceChildren(...rows(status.budgets.slice(0, BUDGETS_MAX), budgetRow, "No open session has a budget."));
      this.breakers.replaceChildren(...rows(status.breakers, (breaker) => this.breaker(breaker), "No breaker has anything to tell."));
    });
    this.drawSessions();
  }

  breaker({ of, state, failures, successes }) {
    const { kind, name } = breakerName(of);
    const change = (what) => () => this.operate("POST", `/breakers/${encodeURIComponent(name)}/${what}?of=${kind}`, {});
    const button = (what, label) => el("button", { type: "button", class: "bare", "data-control": `${kind}-${name}-${what}`, "aria-label": `${label} the breaker of ${name}`, on: { click: change(what) } }, label);
    const look = { closed: "ok", forced_closed: "ok", open: "failed", forced_open: "failed", half_open: "asks" }[state] ?? "waits";
    const lets = state === "open" || state === "forced_open" ? button("close", "Close") : button("open", "Open");
    return el("li", {}, mark(look),
      el("span", { class: "grow" }, el("code", {}, name), el("small", {}, `${kind}, ${String(state).replace("_", " ")}, ${failures} of ${failures + successes} failed`)),
      lets, button("reset", "Reset"));
  }

  drawSessions() {
    const life = this.log.life;
    const open = [...life.sessions.values()].filter((session) => !session.closed).toReversed();
    keepFocus(this.sessions, () => this.sessions.replaceChildren(...rows(open.slice(0, SESSIONS_MAX), (session) => this.session(session), "No session is open.")));
    if (open.length > SESSIONS_MAX) this.sessions.append(el("li", { class: "none" }, `and ${open.length - SESSIONS_MAX} more`));
  }

  session(session) {
    const agents = [...session.agents.values()].filter(({ joined }) => !joined);
    return el("li", { class: "tree" }, el("b", {}, session.name),
      el("ul", {}, agents.map(({ path }) => this.agent(session, path))));
  }

  agent(session, path) {
    const turn = [...session.turns.values()].findLast((one) => one.agent === path);
    const depth = path.split("/").length - 1;
    const inner = turn
      ? el("button", { type: "button", class: "bare", "data-control": `${session.name}-${path}`, on: { click: () => this.onTurn(turn) } },
        mark(turn.state), el("span", {}, path), el("small", {}, `turn ${turn.number}, ${stateWords(turn.state)}, ${turn.finished} of ${turn.declared ?? turn.calls.length}`))
      : el("span", { class: "idle" }, path, el("small", {}, "no turn yet"));
    const item = el("li", {}, inner);
    item.style.paddingLeft = `${depth * 18}px`;
    return item;
  }
}

function rows(items, row, none) {
  return items.length > 0 ? items.map(row) : [el("li", { class: "none" }, none)];
}

function waitingRow(waiting) {
  const missing = waiting.missing.length > 0 ? waiting.missing.map(missingWords).join("; ") : "its turn: what it needs is kept for one that waits longer";
  return el("li", {}, mark("waits"), el("span", { class: "grow" }, whoWords(waiting), el("small", {}, `for ${missing}`)), el("span", { class: "figure" }, brief(waiting.longest_ms * 1000)));
}

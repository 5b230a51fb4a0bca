// A report: the turns of a log that is part of the page.

import { brand } from "./brand.js";
import { el } from "./el.js";
import { Log } from "./log.js";
import { patterns } from "./patterns.js";
import { themeSwitch } from "./theme.js";
import { Tip } from "./tip.js";
import { Turns } from "./turns.js";
import { count } from "./units.js";

function read(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

function openReport() {
  const log = new Log();
  for (const event of read("events")) log.add(event);
  const { title, left_out: leftOut } = read("about");
  const tip = new Tip();
  const turns = new Turns({ log, tip, now: (turn) => turn.until });
  const told = `${title}, ${count(log.turnsInOrder.length, "turn")}, ${count(log.calls, "call")}`;
  const banner = leftOut > 0
    ? el("p", { class: "banner", role: "note" }, `This report holds the newest part of a long log: ${count(leftOut, "earlier event")} left out.`)
    : null;
  document.body.append(el("div", { class: "app" },
    el("div", {}, el("header", { class: "bar" }, brand(), el("span", { class: "about" }, told), themeSwitch()), banner),
    el("main", { class: "views" }, turns.node)), tip.node, patterns());
  const first = log.turnsInOrder.find((turn) => turn.calls.length > 0) ?? log.turnsInOrder[0];
  turns.refresh();
  if (first) turns.open(first);
}

openReport();

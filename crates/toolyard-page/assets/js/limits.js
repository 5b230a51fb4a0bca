// Rates and budgets: how often calls may start, how many wait for that, and how much is used of what may be spent.

import { el } from "./el.js";
import { mark } from "./marks.js";
import { brief, count } from "./units.js";

/** The row of a tool's rate. */
export function rateRow({ tool, rate, waiting, paused_ms: paused }) {
  const words = [rate ? `at most ${rate}` : "no rate", paused !== null && `paused for ${brief(paused * 1000)} at the request of its server`];
  const held = waiting > 0 || paused !== null;
  return el("li", {}, mark(held ? "waits" : "ok"), el("span", { class: "grow" }, el("code", {}, tool), el("small", {}, words.filter(Boolean).join(", "))),
    el("span", {}, waiting > 0 ? `${waiting.toLocaleString("en")} ${waiting === 1 ? "waits" : "wait"}` : "none waits"));
}

/** The row of a budget. */
export function budgetRow({ session, of, calls, cost }) {
  const quotas = [calls && quota(calls, "call"), cost && quota(cost, "unit", " of cost")].filter(Boolean);
  return el("li", { class: "budget" }, el("span", { class: "grow" }, el("b", {}, session), el("small", {}, ofWords(of))), el("span", { class: "quotas" }, quotas));
}

function ofWords(of) {
  if (of?.tool) return `calls of ${of.tool}`;
  return { session: "root agent", tree: "all agents" }[of] ?? String(of);
}

function quota({ used, limit }, noun, more = "") {
  const fill = el("span", {});
  fill.style.width = `${limit > 0 ? (used / limit) * 100 : 100}%`;
  return el("span", { class: "quota", "data-spent": used >= limit }, `${used.toLocaleString("en")} of ${count(limit, noun)}${more}`,
    el("span", { class: "meter", "aria-hidden": "true" }, fill));
}

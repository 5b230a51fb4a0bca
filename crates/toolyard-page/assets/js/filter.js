// Which calls of a turn are shown, and in which order. Pure.

import { ranFor, waitedFor } from "./segments.js";

/** The choices: which calls. */
export const SHOWN = [
  ["all", "All", () => true],
  ["bad", "Failed", (call) => ["failed", "refused", "suspended"].includes(call.state)],
  ["open", "Open", (call) => !call.end],
];

/** The choices: in which order. */
export const ORDERS = [
  ["called", "As called", (one, other) => one.batch - other.batch || one.index - other.index],
  ["waited", "Longest wait", null],
  ["ran", "Longest run", null],
];

/** The calls that are asked for. */
export function chosenCalls(calls, { shown, order, text }, now) {
  const keep = SHOWN.find(([name]) => name === shown)[2];
  const words = text.trim().toLowerCase();
  const fits = (call) => keep(call) && (!words || `${call.tool} ${call.id} ${call.end?.code ?? ""}`.toLowerCase().includes(words));
  const chosen = calls.filter(fits);
  const by = ORDERS.find(([name]) => name === order)[2];
  if (by) return chosen.sort(by);
  const measure = order === "ran" ? ranFor : waitedFor;
  const measured = new Map(chosen.map((call) => [call, measure(call, now)]));
  return chosen.sort((one, other) => measured.get(other) - measured.get(one));
}

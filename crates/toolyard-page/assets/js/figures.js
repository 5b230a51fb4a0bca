// The figures of a turn: how many calls, how they ended, how long all of it took.

import { el } from "./el.js";
import { ranFor } from "./segments.js";
import { brief, count } from "./units.js";

/** A line of figures. */
export function figures(turn, now) {
  const ran = turn.calls.reduce((sum, call) => sum + ranFor(call, now), 0);
  const wall = (turn.ended ?? now) - turn.started;
  const open = turn.calls.length - turn.finished;
  const parts = [
    figure(turn.calls.length.toLocaleString("en"), turn.calls.length === 1 ? "call" : "calls"),
    turn.failed > 0 && figure(turn.failed.toLocaleString("en"), "without an output", "bad"),
    open > 0 && figure(open.toLocaleString("en"), "open"),
    turn.asking > 0 && figure(String(turn.asking), turn.asking === 1 ? "question" : "questions", "ask"),
    figure(brief(wall), turn.ended === null ? "so far" : "in all"),
    ran > wall * 1.2 && figure(brief(ran), "of run time, side by side"),
    turn.cancelled && figure("cancelled", ""),
  ];
  return parts.filter(Boolean);
}

function figure(value, what, kind) {
  return el("span", { class: kind ?? null }, el("b", {}, value), what ? ` ${what}` : "");
}

/** A turn in a few words, for lists. */
export function turnWords(turn) {
  if (turn.stub) return count(turn.stub.calls ?? 0, "call");
  const calls = count(turn.calls.length, "call");
  return turn.failed > 0 ? `${calls}, ${turn.failed} failed` : calls;
}

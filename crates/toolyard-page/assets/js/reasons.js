// Why a call waited, and how it ended, in words.

import { brief, count } from "./units.js";

/** What a stretch is called, and why it is there: [title, more]. */
export function reason(call, segment) {
  switch (segment.kind) {
    case "blocked":
      return ["Waited for earlier calls", afterRun(call, segment)];
    case "queued":
      return ["Queued for a permit", whoRan(call, segment)];
    case "asks":
      return asked(segment);
    case "backoff":
      return ["Backed off", `attempt ${segment.attempt.number} had failed: ${segment.attempt.code}`];
    case "retried":
      return [`Attempt ${segment.attempt.number} failed`, `${segment.attempt.code}, to be retried`];
    case "setup":
      return ["Checked", "the engine's own work before the call"];
    case "running":
      return ["Running", attemptNumber(segment)];
    case "failed":
      return ["Ran and failed", call.end?.code ?? ""];
    default:
      return ["Ran", attemptNumber(segment)];
  }
}

/** The same as one sentence, with how long it took. */
export function reasonWords(call, segment) {
  const [title, more] = reason(call, segment);
  return `${title}, ${brief(segment.to - segment.from)}${more ? `: ${more}` : ""}`;
}

function attemptNumber(segment) {
  const number = segment.attempt?.number ?? 1;
  return number > 1 ? `attempt ${number}` : "";
}

function asked(segment) {
  const settled = segment.question.settled;
  if (!settled) return ["Waits for an answer", "somebody is asked whether it may run"];
  const who = settled.who ? ` by ${settled.who}` : "";
  const how = settled.approved ? "approved" : (settled.error ?? "refused");
  return ["Waited for an answer", `${how}${who}${settled.reason ? `: ${settled.reason}` : ""}`];
}

/** Which call of an earlier run ended last before this one could go on. */
function afterRun(call, segment) {
  let last = null;
  for (const other of call.turn.calls) {
    if (other.batch !== call.batch || other.run >= call.run || !other.end) continue;
    if (other.end.mono_us > segment.to + 1000) continue;
    if (!last || other.end.mono_us > last.end.mono_us) last = other;
  }
  if (!last) return `the calls before it had to end first (run ${call.run - 1})`;
  return `run ${last.run} had to end first; ${last.tool} (${last.id}) ended last`;
}

/** How many calls held a permit of the same kind halfway through the wait. */
function whoRan(call, segment) {
  const half = (segment.from + segment.to) / 2;
  const kind = call.called?.class;
  let [same, all] = [0, 0];
  for (const turn of sideBySide(call, half)) {
    for (const other of turn.calls) {
      if (other === call || !runsAt(other, half)) continue;
      all += 1;
      same += kind && other.called.class === kind ? 1 : 0;
    }
  }
    if (same > 0) return `${count(same, "call")} held permits of pool ${kind} meanwhile`;
  if (all > 0) return `${count(all, "call")} ran meanwhile; its pool, its tool or its session was full`;
  return "for a place of its tool or session, or for its tool's rate";
}

function sideBySide(call, at) {
  const turns = [];
  for (const session of call.turn.session.life.sessions.values()) {
    for (const turn of session.turns.values()) {
      if (turn.started <= at && turn.until >= at) turns.push(turn);
    }
  }
  return turns;
}

function runsAt(call, at) {
  if (!call.called || call.called.mono_us > at) return false;
  return !call.end || call.end.mono_us >= at;
}

/** How a call stands, in a few words. */
export function standing(call) {
  const end = call.end;
  if (!end) return { waits: "waiting", asks: "waiting for an answer", running: "running" }[call.state];
  if (end.event === "call.suspended") return "kept for the engine's next life";
  if (end.event !== "tool.completed") return end.code ?? "failed";
  return end.dedupe && end.dedupe !== "fresh" ? `ok, ${end.dedupe}` : "ok";
}

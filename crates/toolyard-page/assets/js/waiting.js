// Who waits for what, and whose breaker it is, in words. Pure.

import { count } from "./units.js";

/** Who waits. */
export function whoWords({ session, who, count: number, reserves }) {
  const depth = who?.calls?.depth ?? 0;
  const kind = who === "handlers" ? "handler" : depth > 0 ? "nested call" : "call";
  return `${count(number, kind)}${session ? ` of ${session}` : ""}${reserves ? ", next in line" : ""}`;
}

/** What is missing. */
export function missingWords(missing) {
  if (missing.place) {
    const { of, in_use: used, width, zombies, is_paused: paused } = missing.place;
    const rest = [`${used} of ${width} taken`, zombies > 0 && `${zombies} by zombies`, paused && "paused"].filter(Boolean).join(", ");
    return `a place ${boundWords(of)} (${rest})`;
  }
  const { scope, holders, is_paused: paused } = missing.lease ?? { holders: [] };
  const holder = holders.at(0);
  const held = holder ? `held by ${holder.session ?? "a session that closes"}, ${holder.state}` : "held";
  return `the serial lease${scope ? ` of ${scope}` : ""} (${held}${paused ? ", paused" : ""})`;
}

function boundWords(of) {
  if (of?.pool) return `in pool ${of.pool}`;
  return { tool: "of its tool", session: "of its session", tree: "of its session tree", threads: "on a thread" }[of] ?? "of a bound";
}

/** The kind and the name of what a breaker guards. */
export function breakerName(of) {
  const [kind, name] = typeof of === "string" ? ["tool", of] : Object.entries(of)[0];
  return { kind, name: String(name) };
}

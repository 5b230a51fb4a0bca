// Draws the stretches of one call into its row.

import { draw } from "./el.js";
import { segmentsOf } from "./segments.js";
import { brief } from "./units.js";

/** How high a row is. */
export const ROW = 26;

const MIDDLE = ROW / 2;
const LINES = new Set(["blocked", "setup", "backoff"]);
const HEIGHTS = { queued: 8, asks: 12 };

/** The shapes of a call, within what the scale shows. */
export function bars(call, scale, now) {
  const shapes = [];
  const segments = segmentsOf(call, now);
  for (const segment of segments) {
    const [left, right] = [scale.x(segment.from), scale.x(segment.to)];
    if (right < -2 || left > scale.width + 2) continue;
    shapes.push(shape(segment, Math.max(left, -4), Math.min(right, scale.width + 4)));
  }
  shapes.push(...ending(call, scale));
  const last = segments.at(-1);
  if (last && call.end) shapes.push(label(call, segments, scale));
  return shapes.filter(Boolean);
}

function shape(segment, left, right) {
  const kind = `seg-${segment.kind}`;
  const marked = { class: kind, "data-kind": segment.kind };
  if (LINES.has(segment.kind)) {
    return draw("line", { ...marked, x1: left, x2: Math.max(right, left + 1), y1: MIDDLE, y2: MIDDLE });
  }
  const height = HEIGHTS[segment.kind] ?? 14;
  const width = Math.max(right - left, 2);
  return draw("rect", { ...marked, x: left, y: MIDDLE - height / 2, width, height, rx: Math.min(2.5, width / 2) });
}

/** A cross where a call ended badly; a ring where it shares the result of another one. */
function ending(call, scale) {
  const end = call.end;
  if (!end) return [];
  const x = scale.x(end.mono_us);
  if (x < -6 || x > scale.width + 6) return [];
  if (end.event === "tool.completed") {
    const shared = end.dedupe && end.dedupe !== "fresh";
    return shared ? [draw("circle", { class: "seg-shared", cx: Math.min(x, scale.width - 6), cy: MIDDLE, r: 4 })] : [];
  }
  if (end.event === "call.suspended") return [];
  const at = Math.max(5, Math.min(x + (call.called ? 7 : 0), scale.width - 5));
  const cross = `M${at - 3.5} ${MIDDLE - 3.5}l7 7m0-7l-7 7`;
  return [draw("path", { class: "seg-cross", d: cross })];
}

/** How long it took, to the right of its bar or, if there is no place, to its left. */
function label(call, segments, scale) {
  const [first, last] = [segments[0], segments.at(-1)];
  const text = brief(call.end.mono_us - first.from);
  const room = text.length * 6 + 8;
  const failed = call.end.event !== "tool.completed";
  const right = scale.x(last.to) + (failed ? 16 : 6);
  if (right + room < scale.width) return draw("text", { x: right, y: MIDDLE }, text);
  const left = scale.x(first.from) - 6;
  if (left - room > 0) return draw("text", { x: left, y: MIDDLE, "text-anchor": "end" }, text);
  return null;
}

/** The stretch at a moment; near one that is too short to be hit, that one. */
export function segmentAt(call, moment, reach, now) {
  const near = (segment) => Math.max(segment.from - moment, moment - segment.to, 0);
  const segments = segmentsOf(call, now).filter((segment) => near(segment) <= reach);
  return segments.sort((one, other) => near(one) - near(other) || shown(other) - shown(one))[0] ?? null;
}

function shown(segment) {
  return segment.kind === "setup" ? 0 : 1;
}

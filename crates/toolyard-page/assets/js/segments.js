// The stretches of time of a call, in order: what it did, or what it waited for.
//
//   received ── blocked ── asks ── queued ── ran ── backoff ── ran ── end
//
// Their kinds are told apart by shape (timeline.css) and by words (reasons.js).

/** Shorter waits are work of the engine itself. */
export const WAIT_MIN = 100;

/** Those of calls that have ended, which do not change any more. */
const known = new WeakMap();

/** The stretches of a call as [{kind, from, to, ...}]; one that goes on ends at `now`. */
export function segmentsOf(call, now) {
  if (!call.end) return stretches(call, now);
  if (!known.has(call)) known.set(call, stretches(call, call.end.mono_us));
  return known.get(call);
}

function stretches(call, now) {
  const started = call.called?.mono_us ?? call.end?.mono_us ?? now;
  const segments = waitsOf(call, started, now);
  if (call.called) segments.push(...attemptsOf(call, now));
  return segments;
}

/** The waits before the first attempt: open questions first, then the queue, and the rest is for earlier calls. */
function waitsOf(call, until, now) {
  const asks = call.questions.map((question) => ({
    kind: "asks",
    from: question.asked,
    to: Math.min(question.settled?.mono_us ?? call.end?.mono_us ?? now, until),
    question,
  }));
  const ready = call.ready ?? (asks.length > 0 ? asks[0].from : until);
  const segments = [];
  let at = call.received;
  for (const ask of asks) {
    between(call, at, Math.min(ready, ask.from), ask.from, segments);
    segments.push(ask);
    at = ask.to;
  }
  between(call, at, Math.max(at, ready), until, segments);
  return segments.filter((segment) => segment.to > segment.from);
}

/** Splits what is between two moments at the moment at which the call was ready. */
function between(call, from, ready, to, segments) {
  const split = Math.min(Math.max(ready, from), to);
  const early = call.run > 0 ? "blocked" : "setup";
  if (split > from) segments.push({ kind: early, from, to: split });
  if (to > split) segments.push({ kind: to - split < WAIT_MIN ? "setup" : "queued", from: split, to });
}

function attemptsOf(call, now) {
  const segments = [];
  if (call.attempts.length === 0) {
    const to = call.end?.mono_us ?? now;
    segments.push({ kind: lastKind(call), from: call.called.mono_us, to });
  }
  call.attempts.forEach((attempt, index) => {
    const next = call.attempts[index + 1];
    const to = attempt.to ?? call.end?.mono_us ?? now;
    segments.push({ kind: attempt.code ? "retried" : lastKind(call), from: attempt.from, to, attempt });
    if (!attempt.code) return;
    const resumes = next?.from ?? call.end?.mono_us ?? now;
    segments.push({ kind: "backoff", from: to, to: resumes, attempt });
  });
  return segments;
}

function lastKind(call) {
  if (!call.end) return "running";
  return call.end.event === "tool.completed" ? "ran" : "failed";
}

/** How long a call held permits. */
export function ranFor(call, now) {
  let sum = 0;
  for (const { kind, from, to } of segmentsOf(call, now)) {
    if (kind === "ran" || kind === "running" || kind === "failed" || kind === "retried") sum += to - from;
  }
  return sum;
}

/** How long it waited before its first attempt. */
export function waitedFor(call, now) {
  return Math.max(0, (call.called?.mono_us ?? call.end?.mono_us ?? now) - call.received);
}

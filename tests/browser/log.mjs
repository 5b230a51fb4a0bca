// Makes event logs of any size: turns in which calls wait for permits, for earlier runs, for answers and for retries.

const EPOCH = "5d1f0c9a7be24a60";
const WALL = 1_795_346_602_516;
const WIDTHS = { read: 20, serial: 1, concurrent: 10 };

/** Numbers that look random and are the same in every run. */
function numbers(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const TOOLS = [
  ["read_file", "read", 1],
  ["list_dir", "read", 0.4],
  ["fetch_page", "concurrent", 4],
  ["write_file", "serial", 0.8],
  ["search_notes", "read", 2],
];

/** The events of one session with one turn of this many calls, as objects. */
export function log(calls, { session = "run", seed = 7 } = {}) {
  const random = numbers(seed);
  const events = [];
  const add = (at, event) => events.push({ at, ...event });
  const base = 80_000;
  add(12, { session: "@engine", agent: "root", event: "engine.started", version: "0.1.0", epoch: EPOCH });
  add(base, { session, agent: "root", event: "session.opened" });
  add(base + 400, { session, agent: "root", turn: 1, batch: 1, event: "turn.started", calls });
  const plan = planOf(calls, random);
  let end = base;
  for (const call of schedule(plan, base + 500, random)) {
    const of = { session, agent: "root", turn: 1, batch: 1, run: call.run, call_id: `call_${call.index + 1}`, index: call.index };
    for (const [at, event] of eventsOf(call)) {
      add(at, { ...of, ...event });
      end = Math.max(end, at);
    }
  }
  const failed = plan.filter((call) => call.ends !== "tool.completed").length;
  add(end + 200, { session, agent: "root", turn: 1, batch: 1, event: "turn.ended", ok: calls - failed, failed });
  add(end + 900, { session, agent: "root", event: "session.closed" });
  add(end + 1500, { session: "@engine", agent: "root", event: "engine.drain", step: "stopped" });
  return numbered(events);
}

/** Which calls there are: their tools, their runs and how they end. */
function planOf(calls, random) {
  const plan = [];
  let run = -1;
  let before = null;
  let left = 0;
  let tool = TOOLS[0];
  for (let index = 0; index < calls; index += 1) {
    if (left === 0) {
      tool = TOOLS[Math.floor(random() * TOOLS.length)];
      left = tool[1] === "serial" ? 1 + Math.floor(random() * 3) : 3 + Math.floor(random() * Math.max(4, calls / 12));
    }
    left -= 1;
    const chosen = tool[1] === "read" && random() < 0.3 ? TOOLS[1] : tool;
    if (chosen[1] !== before || chosen[1] === "serial") run += 1;
    before = chosen[1];
    const luck = random();
    const ends = luck < 0.02 ? "tool.input_invalid" : luck < 0.05 ? "tool.failed" : "tool.completed";
    plan.push({ index, run, tool: chosen[0], class: chosen[1], takes: chosen[2] * (2_000 + random() * 14_000), ends, retries: luck > 0.95 ? 1 : 0, asks: chosen[1] === "serial" && random() < 0.5 });
  }
  return plan;
}

/** When each call starts and ends: runs after one another, the calls of a run side by side as far as a pool is wide. */
function schedule(plan, begin, random) {
  let free = begin;
  const runs = [];
  for (const call of plan) (runs[call.run] ??= []).push(call);
  for (const run of runs) {
    const lanes = Array.from({ length: WIDTHS[run[0].class] }, () => free);
    for (const call of run) {
      call.received = begin + call.index * 4;
      call.ready = free;
      if (call.asks) call.asked = [free, (call.ready = free + 8_000 + random() * 40_000)];
      const lane = lanes.indexOf(Math.min(...lanes));
      call.start = Math.max(lanes[lane], call.ready, call.received + 30) + 20;
      if (call.ends === "tool.input_invalid") {
        call.end = call.received + 30;
        continue;
      }
      call.firstEnd = call.start + call.takes;
      call.end = call.firstEnd + call.retries * (12_000 + call.takes);
      lanes[lane] = call.end;
    }
    free = Math.max(...lanes) + 60;
  }
  return plan;
}

function eventsOf(call) {
  const name = { tool_name: call.tool };
  const events = [[call.received, { event: "tool.call.received", ...name, bytes: 40 + call.index % 90, digest: "1ec29cc5c8905628".repeat(4) }]];
  if (call.ends === "tool.input_invalid") {
    const message = "Invalid JSON: EOF while parsing an object at position 7";
    events.push([call.end, { event: call.ends, ...name, code: "invalid_input", class: "validation_error", message, outcome: "not_started", attempts: 0, queue_ms: 0, duration_ms: 0 }]);
    return events;
  }
  if (call.asked) events.push(...questionOf(call, name));
  const queue = Math.floor((call.start - call.ready) / 1000);
  events.push([call.start, { event: "tool.called", ...name, side_effects: call.class === "serial" ? "write" : "read", class: call.class, queue_ms: queue, policy_version: 1, ...(call.asked ? { approval: "asked" } : {}) }]);
  events.push([call.start + 10, { event: "dispatch.attempt", attempt: 1 }]);
  if (call.retries > 0) {
    events.push([call.firstEnd, { event: "dispatch.retry", attempt: 1, delay_ms: 12, code: "transient" }]);
    events.push([call.firstEnd + 12_000, { event: "dispatch.attempt", attempt: 2 }]);
  }
  const attempt = 1 + call.retries;
  events.push([call.end - call.takes / 2, { event: "tool.output_delta", attempt, text: `read ${call.index} of it\n<b>not bold</b>\n` }]);
  const took = { queue_ms: queue, duration_ms: Math.round((call.end - call.start) / 1000) };
  if (call.ends === "tool.failed") {
    events.push([call.end, { event: call.ends, ...name, code: "timeout", class: "timeout", message: "Tool exceeded its wall time limit", outcome: "unknown", attempts: attempt, ...took }]);
  } else {
    events.push([call.end, { event: call.ends, ...name, ...took, bytes: 2_400, dedupe: "fresh", sandbox: "host", cancel_requested: false }]);
  }
  return events;
}

function questionOf(call, name) {
  const summary = JSON.stringify({ path: `notes/${call.index}.md`, content: "# Notes\n" });
  return [
    [call.asked[0], { event: "tool.confirmation_requested", ...name, side_effects: "write", expires_ms: 300_000, request: `${EPOCH}.${call.index}.9c41ee07d2b8f315`, digest: "1ec29cc5c8905628".repeat(4), input_summary: summary, projected_modifications: [`notes/${call.index}.md`] }],
    [call.asked[1], { event: "tool.confirmation_resolved", approved: true, decision: "allow", who: "ada", by: "approver", digest: "1ec29cc5c8905628".repeat(4) }],
  ];
}

/** In the order of their times, numbered as the engine numbers them. */
function numbered(events) {
  const seqs = new Map();
  return events.sort((one, other) => one.at - other.at).map(({ at, session, ...event }, index) => {
    const first = event.event === "engine.started";
    const seq = first ? 0 : (seqs.get(session) ?? 0) + 1;
    if (!first) seqs.set(session, seq);
    const mono = Math.round(at);
    return { v: 1, seq, position: index, wall_ms: WALL + Math.floor(mono / 1000), mono_us: mono, session, ...event };
  });
}

/** The log as its file has it. */
export function lines(events) {
  return events.map((event) => `${JSON.stringify(event)}\n`).join("");
}

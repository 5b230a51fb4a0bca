// What the server tells of turns beside their events: those whose events are gone, arguments and results of calls.

import { Call } from "./call.js";

/** Takes a session that the server lists, with its agents. */
export function addSession(log, { id, agents }) {
  const session = log.session(log.life, { session: id, event: "" });
  for (const path of agents ?? []) {
    if (!session.agents.has(path)) session.agents.set(path, { path, joined: false });
  }
  log.shape += 1;
}

/** Takes a turn that the server lists but whose events this page has not seen. */
export function addStub(log, stub, startedMs) {
  const life = log.life;
  life.wallBase ??= startedMs;
  const at = (stub.started_ms - life.wallBase) * 1000;
  const event = { session: stub.session, agent: stub.agent, turn: stub.turn, mono_us: at, event: "" };
  const session = log.session(life, event);
  if (session.turns.has(stub.turn)) return;
  const turn = log.turn(session, event);
  turn.stub = stub;
  turn.declared = stub.calls;
  turn.ended = stub.ended_ms === null ? null : (stub.ended_ms - life.wallBase) * 1000;
}

/** Loads the outcomes of a turn: arguments and results for its calls, and the calls themselves if events are gone. */
export async function loadResults(api, turn) {
  const path = `/sessions/${encodeURIComponent(turn.session.name)}/turns/${turn.number}?partial=true&to=neutral`;
  const { outcomes } = await api.get(path);
  (outcomes ?? []).forEach((outcome, index) => outcome && take(turn, outcome, index));
  turn.version += 1;
}

function take(turn, outcome, index) {
  const batch = turn.calls[0]?.batch ?? 0;
  let call = turn.byPlace.get(`${batch}/${index}`);
  if (!call) {
    if (!turn.stub) return;
    call = fromOutcome(turn, outcome, index);
    turn.byPlace.set(`${batch}/${index}`, call);
    turn.calls.push(call);
    turn.finished += 1;
    turn.failed += outcome.success ? 0 : 1;
  }
  call.arguments = outcome.arguments;
  call.result = textOf(outcome.output);
}

function fromOutcome(turn, outcome, index) {
  const at = turn.ended ?? turn.started;
  const call = new Call(turn, { batch: 0, index, run: outcome.run, call_id: outcome.call_id, tool_name: outcome.tool_name, mono_us: at });
  const { error } = outcome;
  call.end = outcome.success
    ? { event: "tool.completed", mono_us: at }
    : { event: "tool.failed", mono_us: at, code: error?.code, message: error?.message };
  return call;
}

/** An output as text: a text, blocks of content, or any JSON. */
function textOf(output) {
  if (output === null || output === undefined) return null;
  if (typeof output === "string") return output;
  const blocks = Array.isArray(output) ? output : output.content;
  if (Array.isArray(blocks) && blocks.every((block) => typeof block?.text === "string")) return blocks.map((block) => block.text).join("\n");
  return JSON.stringify(output, null, 2);
}

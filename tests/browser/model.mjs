// What the page makes of events, without a browser.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { Desk } from "../../crates/toolyard-page/assets/js/desk.js";
import { Log } from "../../crates/toolyard-page/assets/js/log.js";
import { reason } from "../../crates/toolyard-page/assets/js/reasons.js";
import { Scale } from "../../crates/toolyard-page/assets/js/scale.js";
import { segmentsOf } from "../../crates/toolyard-page/assets/js/segments.js";
import { log } from "./log.mjs";

function folded(events) {
  const model = new Log();
  for (const event of events) model.add(event);
  return model;
}

test("every call of a log is in its turn, with how it ended", () => {
  const model = folded(log(500));
  const [turn] = model.turnsInOrder;
  assert.equal(turn.calls.length, 500);
  assert.equal(turn.finished, 500);
  assert.equal(turn.calls.filter((call) => call.state !== "ok").length, turn.failed);
  assert.equal(turn.state, "failed");
});

test("the stretches of a call follow one another from its arrival to its end", () => {
  const [turn] = folded(log(500)).turnsInOrder;
  for (const call of turn.calls) {
    const segments = segmentsOf(call, turn.until);
    for (const [index, { from, to }] of segments.entries()) {
      assert.ok(from < to || segments.length === 1, `${call.id}: ${from} to ${to}`);
      if (index > 0) assert.ok(from >= segments[index - 1].to, call.id);
    }
  }
});

test("a wait says what for", () => {
  const [turn] = folded(log(500)).turnsInOrder;
  const told = new Set();
  for (const call of turn.calls) {
    for (const segment of segmentsOf(call, turn.until)) told.add(`${segment.kind}: ${reason(call, segment).join(", ")}`);
  }
  const some = (pattern) => assert.ok([...told].some((text) => pattern.test(text)), String(pattern));
  some(/^blocked: Waited for earlier calls, run \d+ had to end first; \w+ \(call_\d+\) ended last$/);
  some(/^queued: Queued for a permit, 20 calls held permits of pool read meanwhile$/);
  some(/^asks: Waited for an answer, approved by ada$/);
  some(/^backoff: Backed off, attempt 1 had failed: transient$/);
});

test("a call that has not started is queued once the runs before its own have ended", () => {
  const events = log(60);
  const last = events.find(({ event, run }) => event === "tool.called" && run === 2);
  const model = folded(events.slice(0, events.indexOf(last)));
  const [turn] = model.turnsInOrder;
  const now = turn.until + 10_000;
  const waits = (run) => turn.calls.filter((call) => call.run === run && !call.end && !call.question).map((call) => segmentsOf(call, now).at(-1).kind);
  assert.ok(waits(2).length > 0 && waits(2).every((kind) => kind === "queued"), waits(2).join());
  assert.ok(waits(3).length > 0 && waits(3).every((kind) => kind === "blocked"), waits(3).join());
});

test("every kind of event in the documentation is understood", () => {
  const text = readFileSync(new URL("../../docs/events.md", import.meta.url), "utf8");
  const examples = text.split("```json\n")[1].split("```")[0].trim().split("\n").map((line) => JSON.parse(line));
  const model = folded(examples);
  const [run, other] = model.turnsInOrder.filter(({ calls }) => calls.length > 0);
  assert.deepEqual(run.calls.map((call) => call.state), ["ok", "refused", "refused", "failed"]);
  assert.equal(run.calls[0].questions[0].settled.who, "ada");
  assert.deepEqual([run.calls[3].late.ok, other.calls[0].state], [false, "suspended"]);
});

test("a log that begins in the middle is shown as far as it goes", () => {
  const events = log(200);
  const model = folded(events.slice(700));
  const [turn] = model.turnsInOrder;
  assert.ok(turn.calls.length > 0 && turn.ended !== null);
  for (const call of turn.calls) segmentsOf(call, turn.until);
});

/** A desk over a server with these pages of questions, each a list of ids; `asked` is called before a page is given. */
function deskOver(pages, asked = () => {}) {
  const question = (id) => ({ request_id: String(id), digest: "d", refused: null, expires_ms: 1 });
  const get = async (path) => {
    const at = Number(/cursor=(\d+)/.exec(path)?.[1] ?? 0);
    asked(at);
    return { confirmations: pages[at].map(question), next: at + 1 < pages.length ? String(at + 1) : null };
  };
  const desk = new Desk({ get }, () => {});
  return { desk, question };
}

test("all pages of questions are loaded, and what is on none of them is settled", async () => {
  const pages = [[1, 2], [3, 4], [5]];
  const { desk } = deskOver(pages);
  await desk.load();
  assert.deepEqual([...desk.open.keys()], ["1", "2", "3", "4", "5"]);
  pages[1] = [4];
  await desk.load();
  assert.deepEqual([...desk.open.keys()], ["1", "2", "4", "5"]);
  assert.deepEqual(desk.settled.map((one) => [one.question.request_id, one.why]), [["3", "settled meanwhile"]]);
});

test("a question that is asked while the others are loaded stays open, and so do those of pages that are too many", async () => {
  const pages = [[1], [2]];
  const { desk, question } = deskOver(pages, (at) => at === 1 && desk.add(question(3)));
  await desk.load();
  assert.deepEqual([...desk.open.keys()].sort(), ["1", "2", "3"]);
  pages.splice(0, 2, ...Array.from({ length: 60 }, (_, at) => [at + 10]));
  await desk.load();
  assert.ok(desk.open.has("1") && desk.open.has("10") && !desk.open.has("69"));
  assert.equal(desk.settled.length, 0);
});

test("a new life of the engine begins anew", () => {
  const model = folded([...log(5), ...log(5)]);
  assert.deepEqual([model.lives.length, model.turnsInOrder.length], [2, 2]);
  assert.notEqual(model.turnsInOrder[0], model.turnsInOrder[1]);
});

test("an unknown kind of event changes nothing", () => {
  const model = folded(log(3));
  const { shape } = model;
  model.add({ v: 1, seq: 99, position: 999, wall_ms: 0, mono_us: 1, session: "run", agent: "root", event: "tool.dreamt" });
  assert.equal(model.shape, shape);
});

test("what is seen stays within the whole, and follows it only if all of it was seen", () => {
  const scale = new Scale(0, 1000, 100);
  scale.whole(0, 2000);
  assert.deepEqual([scale.from, scale.to], [0, 2000]);
  scale.zoom(0.5, 0);
  scale.whole(0, 4000);
  assert.deepEqual([scale.from, scale.to], [0, 1000]);
  scale.pan(-5);
  assert.deepEqual([scale.from, scale.to], [0, 1000]);
  scale.pan(100);
  assert.deepEqual([scale.from, scale.to], [3000, 4000]);
  assert.ok(scale.ticks().every(({ moment }) => moment >= 3000 && moment <= 4000));
});

test("what was loaded of a question stays while it asks for the same, and is loaded again when it does not", async () => {
  const listed = { request_id: "1", session: "a", digest: "d", arguments: null, changes: null, sheet: [], expires_ms: 1 };
  const whole = { ...listed, arguments: { path: "x" }, changes: "+ x", sheet: [{ label: "path", lines: ["x"] }] };
  let digest = "d";
  const answer = (path) => (path === "/confirmations" ? { confirmations: [{ ...listed, digest, expires_ms: 2 }] } : whole);
  const desk = new Desk({ get: async (path) => answer(path) }, () => {});
  await desk.load();
  await desk.whole(desk.open.get("1"));
  await desk.load();
  const { isWhole, changes, expires_ms } = desk.open.get("1");
  assert.deepEqual([isWhole, changes, expires_ms], [true, "+ x", 2]);
  digest = "another";
  await desk.load();
  assert.equal(desk.open.get("1").isWhole, false);
});

// Functions as tools, and what travels in lines.

import assert from "node:assert/strict";
import test from "node:test";
import { Image, start, ToolError, tool } from "toolyard";
import { fieldsOf, valueOf } from "../src/content.js";
import { encode, LINE_MAX, Splitter } from "../src/lines.js";
import { Queue } from "../src/queue.js";

function thereAndBack(value) {
  const { result, structured = result } = fieldsOf(value);
  return valueOf(typeof structured === "object" ? structured : { content: [], text: structured }, true);
}

test("values come back as they were", () => {
  for (const value of [3, 1.5, true, null, "3", [1, "a"], { a: 1 }, { result: 1 }, { result: { result: 2 } }, [], {}]) {
    assert.deepEqual(thereAndBack(value), value);
  }
  assert.equal(thereAndBack(undefined), null);
  assert.deepEqual(thereAndBack(new Map([["a", new Set([1])]])), { a: [1] });
});

test("what the model reads", () => {
  assert.deepEqual(fieldsOf("3"), { result: "3" });
  assert.deepEqual(fieldsOf({ a: 1 }), { result: { a: 1 } });
  assert.deepEqual(fieldsOf(3), { content: [{ type: "text", text: "3" }], structured: { result: 3 } });
  const image = { type: "image", media_type: "image/png", data: "AAE=" };
  assert.deepEqual(fieldsOf(new Image(Uint8Array.of(0, 1), "image/png")), { content: [image] });
  assert.deepEqual(fieldsOf(["a", new Image(Uint8Array.of(0, 1), "image/png")]), { content: [{ type: "text", text: "a" }, image] });
});

test("what is no JSON is the tool's fault", () => {
  const circle = {};
  circle.circle = circle;
  for (const value of [10n, circle, () => 1]) {
    assert.throws(() => fieldsOf(value), (error) => error instanceof ToolError && error.kind === "output_invalid");
  }
});

test("what other tools give", () => {
  assert.deepEqual(valueOf({ result: 3 }, false), { result: 3 });
  assert.equal(valueOf({ content: [{}], text: "a" }, false), "a");
  assert.deepEqual(valueOf({ content: "a file's", size: 1 }, false), { content: "a file's", size: 1 });
});

test("a definition", () => {
  const run = () => {};
  const { definition } = tool({ name: "pay", sideEffects: "network", timeoutMs: 5, graceMs: 1, maxConcurrency: 2, concurrency: "serial", run });
  assert.deepEqual(JSON.parse(JSON.stringify(definition)), {
    name: "pay", side_effects: "network", class: "serial", timeout_ms: 5, grace_ms: 1, max_concurrency: 2,
  });
  for (const sideEffects of [undefined, "writes", 1]) {
    assert.throws(() => tool({ name: "look", run, sideEffects }), /look .*: write sideEffects with the worst of "none"/);
  }
  assert.throws(() => tool({ name: "look" }), TypeError);
  assert.throws(() => tool(), TypeError);
  assert.throws(() => tool({ name: "look", sideEffects: "read", run, side_effects: "write" }), /no 'side_effects'/);
});

test("tools that an engine does not take", async () => {
  const run = () => {};
  const look = { name: "look", sideEffects: "read", run };
  await assert.rejects(start({ tools: [look, look] }), /several tools have the name 'look'/);
  await assert.rejects(start({ tools: [{ name: "look", run }] }), /write sideEffects/);
});

test("lines", () => {
  assert.throws(() => encode({ text: "\ud800" }), /half a character/);
  assert.equal(encode({ text: "\\ud800 😀" }).toString(), '{"text":"\\\\ud800 😀"}\n');
  assert.throws(() => encode({ text: "x".repeat(LINE_MAX) }), RangeError);
  const lines = [];
  const splitter = new Splitter((line) => lines.push(line.toString()));
  for (const piece of ["a", "b\nc\n", "", "\nd"]) splitter.feed(Buffer.from(piece));
  assert.deepEqual(lines, ["ab", "c", ""]);
});

test("a queue that nobody empties misses the oldest", async () => {
  const plain = new Queue({ room: 2 });
  for (const thing of [1, 2, 3]) plain.put(thing);
  plain.end();
  const told = new Queue({ room: 2, missed: (thing) => `reset before ${thing}` });
  for (const thing of [1, 2, 3, 4]) told.put(thing);
  told.end();
  const found = [];
  for (const queue of [plain, told]) for await (const thing of queue) found.push(thing);
  assert.deepEqual(found, [2, 3, "reset before 3", 4]);
});

// The engine under the real program: AG-14 as a parent sees it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { connect, Deny, Edit, Image, InvalidArgs, PermissionDenied, ProgramDied, Refused, ToolError, ToolNotFound } from "toolyard";
import { add, answer, hanging, program, real, skip, workspace } from "./support.mjs";

const save = { name: "save", sideEffects: "write", run: ({ text }) => `saved ${text}` };

test("a model's answer", { skip }, (t) =>
  real(t, { tools: [add] }, async (_, session) => {
    const turn = await session.dispatch(answer(["t1", "add", { a: 1 }], ["t2", "nope", {}], ["t3", "add", { a: "x" }]));
    assert.deepEqual(turn.messages[0].content.map(({ tool_use_id: id }) => id), ["t1", "t2", "t3"]);
    assert.equal(turn.messages[0].content[0].content, "3");
    assert.deepEqual(turn.outcomes.map(({ callId, tool, value }) => [callId, tool, value]), [["t1", "add", 3], ["t2", "nope", undefined], ["t3", "add", undefined]]);
    assert.ok(turn.outcomes[1].error instanceof ToolNotFound);
    assert.ok(turn.outcomes[2].error instanceof InvalidArgs);
    assert.equal((await session.dispatch(answer(["t1", "add", { a: 1 }]), { to: "neutral" })).messages[0].status, "ok");
  }));

test("values come back as they were, and pictures", { skip }, (t) => {
  const values = { number: 3, nothing: null, text: "3", list: [1, "a"], object: { result: 1 } };
  const get = { name: "get", sideEffects: "read", run: ({ name }) => values[name] };
  const draw = { name: "draw", sideEffects: "read", run: () => ["a picture", new Image(Buffer.from("\x89PNG", "latin1"), "image/png")] };
  return real(t, { tools: [get, draw] }, async (_, session) => {
    for (const [name, value] of Object.entries(values)) assert.deepEqual(await session.call("get", { name }), value);
    const turn = await session.dispatch(answer(["t1", "draw", {}]));
    assert.deepEqual(turn.messages[0].content[0].content.map(({ type }) => type), ["text", "image"]);
  });
});

test("a key runs once over turns", { skip }, (t) => {
  const ran = [];
  const charge = { name: "charge", sideEffects: "network", run: ({ amount }, { key }) => (ran.push(key), `charged ${amount}`) };
  return real(t, { tools: [charge], approve: () => true }, async (_, session) => {
    for (const dedupe of ["fresh", "replayed"]) {
      const [{ value, meta }] = await session.outcomes([["charge", { amount: 5 }, { key: "order-17" }]]);
      assert.deepEqual([value, meta.dedupe], ["charged 5", dedupe]);
    }
    assert.deepEqual(ran, ["order-17"]);
  });
});

test("reads overlap and writes do not", { skip }, (t) => {
  let arrive;
  const both = new Promise((resolve) => (arrive = resolve));
  let there = 0;
  const look = { name: "look", sideEffects: "read", run: async () => ((there += 1) === 2 && arrive(), await both, true) };
  let running = 0;
  const change = { name: "change", sideEffects: "write", run: async () => {
    const count = (running += 1);
    await new Promise(setImmediate);
    running -= 1;
    return count;
  } };
  return real(t, { tools: [look, change], approve: () => true }, async (_, session) => {
    assert.deepEqual(await session.batch(["look", "look", "change", "change", "change"]), [true, true, 1, 1, 1]);
  });
});

test("a turn that grows, and tools that call tools", { skip }, (t) => {
  const deep = { name: "deep", sideEffects: "read", run: async ({ n }, context) => (n === 0 ? 0 : 1 + (await context.call("deep", { n: n - 1 }))) };
  return real(t, { tools: [add, deep] }, async (_, session) => {
    const turn = session.turn();
    const first = await turn.call("add", { a: 1 });
    assert.equal(await turn.call("add", { a: first }), 5);
    assert.equal((await turn.end()).outcomes.length, 2);
    assert.equal((await session.turn().end()).outcomes.length, 0);
    assert.equal(await session.call("deep", { n: 12 }), 12);
  });
});

test("failures, timeouts and cancels", { skip }, (t) => {
  const attempts = [];
  const flaky = { name: "flaky", sideEffects: "read", attempts: 2, run: (_, { attempt }) => {
    attempts.push(attempt);
    throw new ToolError("HTTP 503", { kind: "transient", retryAfterMs: 1 });
  } };
  const broken = { name: "broken", sideEffects: "read", run() { throw new Error("secret"); } };
  const { tool: hang, begun, stopped } = hanging();
  const slow = { name: "slow", sideEffects: "none", timeoutMs: 50, attempts: 1, run: () => new Promise(() => {}) };
  return real(t, { tools: [flaky, broken, hang, slow] }, async (_, session) => {
    const [transient, internal, late] = await session.batch(["flaky", "broken", "slow"]);
    assert.deepEqual([transient.code, transient.attempts, attempts, late.code], ["transient", 2, [1, 2], "timeout"]);
    assert.ok(!internal.message.includes("secret"));
    const controller = new AbortController();
    const call = session.call("hang", {}, { signal: controller.signal });
    await begun;
    controller.abort();
    await assert.rejects(call, { name: "AbortError" });
    await stopped;
  });
});

test("bounds, forks and functions", { skip }, (t) =>
  real(t, { tools: [add] }, async (engine) => {
    const session = await engine.session("s", { capabilities: { tools: ["add"] } });
    const child = await session.fork({ name: "child", onlyTools: ["add"] });
    assert.deepEqual([child.agent, (await child.definitions("openai-chat")).length], ["root/child", 1]);
    await assert.rejects(session.call("read_file", { path: "a" }), PermissionDenied);
    await assert.rejects(engine.session("s"), ({ code }) => code === "session_open");
    await session.close();
    for (const use of [() => session.call("add", { a: 1 }), () => session.turn(), () => session.definitions()]) {
      await assert.rejects(async () => use(), /the session s was closed/);
    }
    await assert.rejects(engine.register({ name: "read_file", sideEffects: "read", run() {} }), Refused);
    await engine.unregister("add");
    const again = await engine.session("s");
    await assert.rejects(again.call("add", { a: 1 }), ToolNotFound);
  }));

test("approvals", { skip }, async (t) => {
  const questions = [];
  const answers = [true, new Edit({ text: "b" }), false, new Deny("not on a Friday"), "always"];
  const approve = (question) => (questions.push(question), answers.shift());
  await real(t, { tools: [save], approve }, async (_, session) => {
    const results = [];
    for (let n = 0; n < 6; n += 1) results.push(...(await session.batch([["save", { text: "a" }]])));
    assert.deepEqual([results[0], results[1], results[4], results[5]], ["saved a", "saved b", "saved a", "saved a"]);
    assert.deepEqual([results[2].code, results[3].code], ["user_denied", "user_denied"]);
    assert.ok(results[3].message.includes("not on a Friday"));
    assert.deepEqual([questions.length, questions[0].arguments, questions[0].sideEffects], [5, { text: "a" }, "write"]);
  });
  await real(t, { tools: [save] }, (_, session) => assert.rejects(session.call("save", { text: "a" }), PermissionDenied));
});

test("output and events", { skip }, (t) => {
  const build = { name: "build", sideEffects: "read", run: (_, context) => (context.emit("a"), "built") };
  return real(t, { tools: [build] }, async (engine, session) => {
    const events = engine.events(["tool.completed"]);
    const first = events.next();
    const pieces = [];
    await session.dispatch(answer(["t1", "build", {}]), { onDelta: ({ text }) => pieces.push(text) });
    assert.deepEqual([pieces, (await first).value.event], [["a"], "tool.completed"]);
    await events.return();
  });
});

test("a configuration that is wrong", { skip }, async (t) => {
  const directory = workspace(t, "[pools]\nraed = 3\n");
  await assert.rejects(real(t, { workspace: directory }, () => {}), (error) => error instanceof ProgramDied && error.exitCode === 2 && error.message.includes("raed"));
});

test("a server", { skip }, async (t) => {
  const directory = workspace(t);
  writeFileSync(join(directory, "a.txt"), "hi\n");
  const args = ["serve", "--json", "--http", "127.0.0.1:0", "--workspace", directory, "--config", join(directory, "toolyard.toml")];
  const server = spawn(program, args, { stdio: ["ignore", "pipe", "ignore"] });
  t.after(() => server.kill());
  const said = await new Promise((resolve) => server.stdout.once("data", resolve));
  const { address, token } = JSON.parse(said.toString());
  const session = await connect(address, { token }).session();
  assert.equal((await session.call("read_file", { path: "a.txt" })).content, "hi\n");
  const [text, unknown] = await session.batch([["echo", { text: "x" }], "nope"]);
  assert.deepEqual([text.text, unknown.code], ["x", "not_found"]);
  const turn = await session.dispatch(answer(["t1", "read_file", { path: "a.txt" }]));
  assert.equal(turn.messages[0].content[0].content, "hi\n");
  const waiting = session.start(answer(["t1", "write_file", { path: "b", content: "x" }]));
  waiting.cancel();
  assert.equal((await waiting).outcomes[0].error.code, "cancelled");
  await assert.rejects(connect(address, { token: "wrong" }).session(), Refused);
  assert.throws(() => session.turn(), TypeError);
  await session.close();
});

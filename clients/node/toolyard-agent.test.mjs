// Agents that are written with toolyard-agent.mjs: under the real program, and against a scripted peer.
//
// TOOLYARD names the program; without it the first kind is skipped, and fails where CI is `true`. What a supervisor does
// rarely, such as half a line or an end in the middle of a call, a scripted peer does over two streams. They are AG-1 to
// AG-4 as an agent sees them.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import test from "node:test";
import { fileURLToPath } from "node:url";
import {
  connect, Disconnected, FsDenied, IN_FLIGHT_MAX, InvalidArgs, LINE_MAX, PermissionDenied, ProtocolError, Shutdown, ToolError,
  ToolFailed, ToolNotFound,
} from "./toolyard-agent.mjs";

const WELCOME = {
  op: "welcome",
  protocol: 1,
  agent: "root/writer",
  input: { task: "x" },
  tools: [{ name: "Read", description: "Reads.", input_schema: { type: "object" }, side_effects: "read" }],
};

/** The other end of a channel, which does what its script says. */
class Peer {
  #lines;
  /** Lines that the agent has written, whether they were read or not. */
  written = 0;

  /** What the agent reads and what it writes. */
  constructor(input = new PassThrough(), output = new PassThrough()) {
    Object.assign(this, { input, output });
    this.#lines = this.#read();
  }

  async *#read() {
    let rest = "";
    for await (const piece of this.output) {
      const lines = (rest + piece).split("\n");
      rest = lines.pop();
      this.written += lines.filter(Boolean).length;
      yield* lines;
    }
  }

  async line() {
    return (await this.#lines.next()).value;
  }

  async read() {
    return JSON.parse((await this.line()) || (await this.line()));
  }

  async readMany(count) {
    const messages = [];
    while (messages.length < count) messages.push(await this.read());
    return messages;
  }

  send(message) {
    this.input.write(`${JSON.stringify(message)}\n`);
  }

  answer({ tool_call_id, args }, result = args, more = {}) {
    this.send({ op: "tool_response", tool_call_id, ok: true, result, ...more });
  }

  deny({ tool_call_id }, error, message = "no", more = {}) {
    this.send({ op: "tool_response", tool_call_id, ok: false, error, message, ...more });
  }

  refuse(refused, { tool_call_id }, line = 9) {
    this.send({ op: "error", message: "no", line, refused, tool_call_id });
  }

  delta({ tool_call_id }, text) {
    this.send({ op: "tool_delta", tool_call_id, text });
  }
}

/** An agent that was welcomed by a peer, which then does what the script says, and `said`: what the script returns. */
async function supervised(t, script, options = {}) {
  const peer = new Peer();
  const { input, output } = peer;
  const said = peer.read().then(async () => {
    peer.send(WELCOME);
    const value = await script(peer);
    input.end();
    return value;
  });
  t.after(() => said);
  return { agent: await connect({ input, output, ...options }), said };
}

/** What a promise rejects with. */
const reason = (promise) => promise.then(() => assert.fail("it has not failed"), (error) => error);

test("the welcome tells who the agent is", async (t) => {
  const { agent } = await supervised(t, () => {});
  assert.equal(agent.name, "root/writer");
  assert.deepEqual(agent.input, { task: "x" });
  assert.deepEqual([...agent.tools.keys()], ["Read"]);
  assert.equal(agent.tools.get("Read").side_effects, "read");
});

test("a call gives its result and its meta", async (t) => {
  const { agent, said } = await supervised(t, async (peer) => {
    const call = await peer.read();
    peer.answer(call, { content: "milk" }, { meta: { attempts: 2 }, note: "changed" });
    return call;
  });
  const call = agent.tools.call("Read", { path: "/a" }, { meta: { timeout_ms: 5 } });
  assert.deepEqual(await call, { content: "milk" });
  assert.deepEqual([call.meta, call.note], [{ attempts: 2 }, "changed"]);
  const sent = { op: "tool_call", tool_call_id: call.id, tool: "Read", args: { path: "/a" }, meta: { timeout_ms: 5 } };
  assert.deepEqual(await said, sent);
});

test("each word for a failure has its class", async (t) => {
  const words = {
    tool_not_found: ToolNotFound,
    permission_denied: PermissionDenied,
    fs_denied: FsDenied,
    invalid_args: InvalidArgs,
    tool_failed: ToolFailed,
    a_later_word: ToolFailed,
  };
  const meta = { code: "timeout", outcome: "unknown", retryable: true, retry_after_ms: 7, attempts: 3 };
  const { agent } = await supervised(t, async (peer) => {
    for (const word of Object.keys(words)) peer.deny(await peer.read(), word, `told by ${word}`, { meta });
  });
  for (const [word, kind] of Object.entries(words)) {
    const error = await reason(agent.tools.call("Read"));
    assert.equal(error.constructor, kind);
    assert.equal(error.name, kind.name);
    assert.equal(error.slug, word);
    assert.equal(error.message, `told by ${word}`);
    assert.deepEqual([error.code, error.outcome, error.retryable, error.retryAfterMs], ["timeout", "unknown", true, 7]);
    assert.match(error.stack, /toolyard-agent\.test\.mjs/, "it tells who has called");
  }
});

test("a batch is in the order of its calls, whatever the order of answers", async (t) => {
  const { agent } = await supervised(t, async (peer) => {
    for (let round = 0; round < 2; round += 1) {
      const [first, second, third] = await peer.readMany(3);
      peer.answer(third);
      peer.deny(second, "fs_denied");
      peer.answer(first);
    }
  });
  const batch = [["Read", { n: 1 }], ["Read", { n: 2 }], ["Read", { n: 3 }, { meta: { timeout_ms: 1 } }]];
  const [one, two, three] = await agent.tools.batch(batch);
  assert.deepEqual([one, three], [{ n: 1 }, { n: 3 }]);
  assert.ok(two instanceof FsDenied);
  await assert.rejects(agent.tools.batch(batch, { throws: true }), FsDenied);
});

test("all calls are sent before the first answer is read, and one more waits for an answer", async (t) => {
  const { agent } = await supervised(t, async (peer) => {
    const calls = await peer.readMany(IN_FLIGHT_MAX);
    assert.equal(peer.written, IN_FLIGHT_MAX + 1, "and the hello");
    peer.answer(calls.pop());
    calls.push(await peer.read());
    for (const call of calls) peer.answer(call);
  });
  const calls = Array.from({ length: IN_FLIGHT_MAX + 1 }, (_, n) => ["Echo", { n, text: "x".repeat(2_000) }]);
  const results = await agent.tools.batch(calls);
  assert.deepEqual(results.map(({ n }) => n), calls.map((_, n) => n));
});

test("lines may come in pieces and end in other ways", async (t) => {
  const { agent } = await supervised(t, async (peer) => {
    const { tool_call_id } = await peer.read();
    const answer = JSON.stringify({ op: "tool_response", tool_call_id, ok: true, result: { text: "é".repeat(9) } });
    for (const byte of Buffer.from(`\n\r\n${answer}\r\n`)) peer.input.write(Buffer.from([byte]));
    const both = (await peer.readMany(2)).map((one) => JSON.stringify({ op: "tool_response", tool_call_id: one.tool_call_id, ok: true }));
    peer.input.write(`${both.join("\n")}\n{"op":"tool_resp`);
  });
  assert.deepEqual(await agent.tools.call("Echo"), { text: "é".repeat(9) });
  assert.deepEqual(await agent.tools.batch([["Echo"], ["Echo"]]), [{}, {}]);
});

test("what a later supervisor may say, and an answer to no call, change nothing", async (t) => {
  const told = t.mock.method(process.stderr, "write", () => true);
  const { agent } = await supervised(t, async (peer) => {
    const call = await peer.read();
    peer.send({ op: "news", text: "…" });
    peer.answer({ tool_call_id: "nobody", args: {} });
    peer.answer(call, { a: 1 }, { more: 1 });
  });
  assert.deepEqual(await agent.tools.call("Echo"), { a: 1 });
  assert.match(told.mock.calls[0].arguments[0], /nobody/);
});

test("a refused line ends its call", async (t) => {
  const { agent } = await supervised(t, async (peer) => {
    peer.refuse("tool_call", await peer.read(), 3);
    peer.answer(await peer.read());
  });
  const error = await reason(agent.tools.call("Echo"));
  assert.deepEqual([error.name, error.message, error.line], ["ProtocolError", "no", 3]);
  assert.deepEqual(await agent.tools.call("Echo", { a: 1 }), { a: 1 });
});

test("a refused cancel does not end its call, and a cancel is sent once", async (t) => {
  t.mock.method(process.stderr, "write", () => true);
  const { agent, said } = await supervised(t, async (peer) => {
    const [call, cancel, turnEnd] = await peer.readMany(3);
    peer.refuse("cancel", call);
    peer.answer(call);
    return [cancel, turnEnd];
  });
  const call = agent.tools.call("Echo", { a: 1 });
  call.cancel();
  call.cancel();
  await agent.turnEnd();
  assert.deepEqual(await call, { a: 1 });
  assert.deepEqual(await said, [{ op: "cancel", tool_call_id: call.id }, { op: "turn_end" }]);
});

test("a supervisor that does not welcome is an error", async () => {
  const refusing = new Peer();
  const refused = connect(refusing);
  refusing.refuse("hello", await refusing.read());
  await assert.rejects(refused, { name: "ProtocolError", message: "no" });
  const closing = new Peer();
  const closed = connect(closing);
  closing.input.end();
  await assert.rejects(closed, Disconnected);
});

test("what was written before is refused and harms nothing", async (t) => {
  const told = t.mock.method(process.stderr, "write", () => true);
  const peer = new Peer();
  peer.output.write("loading");
  const connecting = connect(peer);
  assert.equal(await peer.line(), "loading");
  peer.send({ op: "error", message: "no JSON", line: 1 });
  assert.equal((await peer.read()).op, "hello");
  peer.send(WELCOME);
  assert.equal((await connecting).name, "root/writer");
  assert.match(told.mock.calls[0].arguments[0], /line 1 was refused: no JSON/);
});

test("the end of input reaches everyone who waits", async (t) => {
  const { agent } = await supervised(t, (peer) => peer.readMany(3));
  const errors = await Promise.all([1, 2, 3].map(() => reason(agent.tools.call("Echo"))));
  assert.deepEqual(errors.map(({ name }) => name), ["Disconnected", "Disconnected", "Disconnected"]);
  await assert.rejects(agent.tools.call("Echo"), Disconnected);
  await assert.rejects(agent.tools.batch([["Echo"]]), Disconnected);
  await assert.rejects(agent.turnEnd(), Disconnected);
});

test("after a shutdown what runs is answered, and only a bye may follow", async (t) => {
  const { agent, said } = await supervised(t, async (peer) => {
    const [first] = await peer.readMany(2);
    peer.send({ op: "shutdown", grace_ms: 3_000 });
    peer.deny(first, "tool_failed", "stopped", { meta: { code: "cancelled" }, note: "changed" });
    peer.input.end();
    return peer.read();
  });
  const [first, second] = [1, 2].map(() => reason(agent.tools.call("Echo")));
  const { code, note } = await first;
  assert.deepEqual([code, note], ["cancelled", "changed"]);
  assert.ok((await second) instanceof Shutdown, "it was never answered");
  assert.equal((await reason(agent.tools.call("Echo"))).graceMs, 3_000);
  assert.equal(agent.stopping.graceMs, 3_000);
  await assert.rejects(agent.turnEnd(), Shutdown);
  await agent.bye({ partial: 1 });
  assert.deepEqual(await said, { op: "bye", result: { partial: 1 } });
});

test("a line that is none of the protocol ends all calls", async (t) => {
  for (const line of ["what?", "[1]", '{"no":"op"}', Buffer.from([0xff])]) {
    const { agent } = await supervised(t, async (peer) => {
      await peer.read();
      peer.input.write(Buffer.concat([Buffer.from(line), Buffer.from("\n")]));
    });
    const error = await reason(agent.tools.call("Echo"));
    assert.ok(error instanceof ProtocolError);
    assert.match(error.message, /none of the protocol/);
  }
});

test("deltas come before the end, to a function or by iteration", async (t) => {
  const { agent } = await supervised(t, async (peer) => {
    for (let round = 0; round < 2; round += 1) {
      const call = await peer.read();
      peer.delta(call, "a");
      peer.delta(call, "b");
      peer.answer(call);
    }
    const call = await peer.read();
    peer.delta(call, "a");
    peer.deny(call, "tool_failed");
    peer.delta(call, "late");
  }, { deltas: true });
  const texts = [];
  await agent.tools.call("Build", {}, { onDelta: (text) => texts.push(text) });
  assert.deepEqual(texts.splice(0), ["a", "b"]);
  const call = agent.tools.call("Build");
  for await (const text of call) texts.push(text);
  assert.deepEqual([texts.splice(0), await call], [["a", "b"], {}]);
  await assert.rejects(async () => {
    for await (const text of agent.tools.call("Build")) texts.push(text);
  }, ToolFailed);
  assert.deepEqual(texts, ["a"]);
});

test("deltas have to be asked for", async (t) => {
  const { agent } = await supervised(t, () => {});
  await assert.rejects(agent.tools.call("Build", {}, { onDelta: () => {} }), /deltas: true/);
});

test("a signal cancels its call and rejects at once, and a function that throws does the same", async (t) => {
  const { agent, said } = await supervised(t, async (peer) => {
    const [first, cancelFirst] = await peer.readMany(2);
    const second = await peer.read();
    peer.delta(second, "a");
    const cancelSecond = await peer.read();
    peer.answer(first);
    peer.answer(second);
    peer.answer(await peer.read());
    return [first, second].map(({ tool_call_id }, n) => tool_call_id === [cancelFirst, cancelSecond][n].tool_call_id);
  }, { deltas: true });
  const abort = new AbortController();
  const aborted = reason(agent.tools.call("Build", {}, { signal: abort.signal }));
  abort.abort(new Error("enough"));
  assert.equal((await aborted).message, "enough");
  await assert.rejects(agent.tools.call("Build", {}, { signal: abort.signal }), /enough/, "and is not sent at all");
  const wrong = () => {
    throw new Error("wrong");
  };
  await assert.rejects(agent.tools.call("Build", {}, { onDelta: wrong }), /wrong/);
  assert.deepEqual(await agent.tools.call("Echo", { a: 1 }), { a: 1 });
  assert.deepEqual(await said, [true, true]);
});

test("a call that was not sent yet ends with a shutdown", async (t) => {
  const { agent } = await supervised(t, async (peer) => {
    const calls = await peer.readMany(IN_FLIGHT_MAX);
    peer.send({ op: "shutdown", grace_ms: 3_000 });
    for (const call of calls) peer.answer(call);
    assert.equal((await peer.read()).op, "bye", "and not the call");
  });
  const calls = Array.from({ length: IN_FLIGHT_MAX + 1 }, () => agent.tools.call("Echo"));
  assert.ok((await reason(calls.pop())) instanceof Shutdown);
  await Promise.all(calls);
  await agent.bye();
});

test("a call that was not sent yet is cancelled without the supervisor", async (t) => {
  const { agent } = await supervised(t, async (peer) => {
    for (const call of await peer.readMany(IN_FLIGHT_MAX)) peer.answer(call);
  });
  const sent = Array.from({ length: IN_FLIGHT_MAX }, () => agent.tools.call("Echo"));
  const waits = agent.tools.call("Echo");
  waits.cancel();
  const { code, outcome } = await reason(waits);
  assert.deepEqual([code, outcome], ["cancelled", "not_started"]);
  await Promise.all(sent);
});

test("after names the calls that have not been answered", async (t) => {
  const { agent, said } = await supervised(t, async (peer) => {
    peer.answer(await peer.read());
    const calls = await peer.readMany(4);
    for (const call of calls) peer.answer(call);
    return calls.map(({ after = "none" }) => after);
  });
  const done = agent.tools.call("Echo");
  await done;
  const one = agent.tools.call("Echo");
  await Promise.all([
    one,
    agent.tools.call("Echo", {}, { after: [done, one, "mine"] }),
    agent.tools.call("Echo", { after: "an argument" }, { after: [] }),
    agent.tools.call("Echo"),
  ]);
  assert.deepEqual(await said, ["none", [one.id, "mine"], [], "none"]);
});

test("after bye nothing is sent, and what was sent is answered", async (t) => {
  const { agent, said } = await supervised(t, async (peer) => {
    const [call, bye, cancel] = await peer.readMany(3);
    peer.answer(call);
    return [bye, cancel.op];
  });
  const call = agent.tools.call("Echo", { a: 1 });
  await agent.bye(null);
  await assert.rejects(agent.tools.call("Echo"), /has said bye/);
  await assert.rejects(agent.bye(), /has said bye/);
  call.cancel();
  assert.deepEqual(await call, { a: 1 });
  assert.deepEqual(await said, [{ op: "bye", result: null }, "cancel"]);
});

test("what makes no line is not sent", async (t) => {
  const { agent } = await supervised(t, async (peer) => peer.answer(await peer.read()));
  await assert.rejects(agent.tools.call("Echo", { n: 1n }), TypeError);
  for (const text of ["\ud800", "\\\ud800", "\ud83d\ud83d\ude00"]) await assert.rejects(agent.tools.call("Echo", { text }), /half a character/);
  await assert.rejects(agent.tools.call("Echo", { text: "x".repeat(LINE_MAX) }), RangeError);
  const text = "\\ud800 \u{1f600}";
  assert.deepEqual(await agent.tools.call("Echo", { text }), { text });
});

// As a process of its own, over real pipes and sockets

const LIBRARY = new URL("toolyard-agent.mjs", import.meta.url);
const HERE = dirname(fileURLToPath(LIBRARY));

/** An agent that waits for ever fails its test. */
const BOUND = { timeout: 120_000, killSignal: "SIGKILL" };

/** An agent of this source as a process, whose channel is a pair of pipes or a socket on descriptor 3. */
function spawned(t, channel, source) {
  const args = ["--input-type=module", "-e", `import { connect } from "${LIBRARY}";\n${source}`];
  const stdio = ["pipe", "pipe", "pipe", ...(channel === "fd3" ? ["pipe"] : [])];
  const agent = spawn(process.execPath, args, { stdio, env: { ...process.env, TOOLYARD_CHANNEL: channel }, ...BOUND });
  t.after(() => agent.kill());
  const [stdin, stdout, , socket] = agent.stdio;
  const peer = channel === "fd3" ? new Peer(socket, socket) : new Peer(stdin, stdout);
  const exit = new Promise((resolve) => agent.once("exit", resolve));
  return { agent, peer, exit };
}

for (const channel of ["stdio", "fd3"]) {
  test(`an agent on the channel ${channel} sends all before it reads, and exits when nothing waits`, async (t) => {
    const { agent, peer, exit } = spawned(t, channel, `
      const agent = await connect();
      console.log("printed");
      process.stdout.write("written\\n");
      const calls = Array.from({ length: 1_000 }, (_, n) => ["Echo", { n, text: "x".repeat(5_000) }]);
      const results = await agent.tools.batch(calls, { throws: true });
      console.log(results.every(({ n }, index) => n === index));
      process.stdout.end("ended\\n");
      await agent.turnEnd();
    `);
    const printed = text(channel === "fd3" ? agent.stdout : agent.stderr);
    assert.equal((await peer.read()).op, "hello");
    peer.send(WELCOME);
    for (const call of await peer.readMany(1_000)) peer.answer(call);
    assert.equal((await peer.read()).op, "turn_end");
    assert.equal(await exit, 0, "it exits although its input is open");
    assert.equal(await printed, "printed\nwritten\ntrue\nended\n");
  });

  test(`an agent on the channel ${channel} says bye after a shutdown has closed its input`, async (t) => {
    const { peer, exit } = spawned(t, channel, `
      const agent = await connect();
      const calls = [agent.tools.call("Echo"), agent.tools.call("Echo")];
      const ended = await Promise.allSettled(calls);
      await agent.bye(ended.map(({ reason }) => reason.name));
    `);
    await peer.read();
    peer.send(WELCOME);
    const [first] = await peer.readMany(2);
    peer.send({ op: "shutdown", grace_ms: 3_000 });
    peer.deny(first, "tool_failed");
    peer.input.end();
    assert.deepEqual(await peer.read(), { op: "bye", result: ["ToolFailed", "Shutdown"] });
    assert.equal(await exit, 0);
  });

  test(`an agent on the channel ${channel} is told when its supervisor goes`, async (t) => {
    const { agent, peer, exit } = spawned(t, channel, `
      const agent = await connect();
      const error = await agent.tools.call("Echo").catch((error) => error);
      console.error(error.name, error.message);
    `);
    const told = text(agent.stderr);
    await peer.read();
    peer.send(WELCOME);
    await peer.read();
    peer.input.end();
    assert.equal(await exit, 0);
    assert.equal(await told, "Disconnected the supervisor has closed the channel\n");
  });
}

test("an agent that is not supervised is told so, and only connects once", async (t) => {
  const { agent, peer, exit } = spawned(t, "stdio", `
    const first = await connect();
    const second = await connect().catch((error) => error);
    console.log(second.message);
    process.env.TOOLYARD_CHANNEL = "fd9";
    console.log((await connect().catch((error) => error)).message);
    await first.bye();
  `);
  const told = text(agent.stderr);
  await peer.read();
  peer.send(WELCOME);
  assert.deepEqual(await peer.read(), { op: "bye" });
  assert.equal(await exit, 0);
  assert.match(await told, /is connected already.*\nthere is no channel 'fd9'/);
});

// Under the real program. What an agent tells is the result of its bye, which stands in the report.

const PROGRAM = process.env.TOOLYARD;
const missing = "TOOLYARD does not name the program `toolyard`";
const skip = PROGRAM === undefined && process.env.CI !== "true" && missing;

/** A folder of a test, which ends with it, and the folder `data` in it. */
function folders(t) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "toolyard-agent-")));
  t.after(() => rmSync(folder, { recursive: true }));
  const data = join(folder, "data");
  mkdirSync(data);
  return { folder, data };
}

const READ = [HERE, dirname(dirname(process.execPath))];

/** Runs an agent of this source, in which `data` is the folder that its calls may use: its exit code, report and log. */
async function run(t, source, { tools = "Echo,Read,Write", options = [], channel, onLine, within = folders(t) } = {}) {
  assert.ok(PROGRAM, missing);
  const { folder, data } = within;
  writeFileSync(join(folder, "toolyard.toml"), '[builtin]\nenable = ["shell"]\n');
  const begin = `import * as toolyard from "${LIBRARY}";\nconst data = ${JSON.stringify(data)};\n`;
  writeFileSync(join(folder, "agent.mjs"), begin + source);
  const command = [process.execPath, join(folder, "agent.mjs")];
  // What is JSON here is TOML as well.
  const asked = { command, channel, tools: tools.split(","), fs: [`rw:${data}`], read: READ };
  const config = Object.entries(asked).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
  if (channel) writeFileSync(join(folder, "agents.toml"), ["[agents.agent]", ...config].join("\n"));
  const may = ["--tools", tools, "--fs", `rw:${data}`, ...READ.flatMap((path) => ["--read", path])];
  const how = channel ? ["agents.toml"] : [...may, ...options, "--", ...command];
  const args = ["supervise", "--report", "json", "--workspace", data, ...how];
  const env = { ...process.env, TOOLYARD_LOG: "toolyard_agents=info" };
  const program = spawn(PROGRAM, args, { stdio: ["ignore", "pipe", "pipe"], cwd: folder, env, ...BOUND });
  t.after(() => program.kill("SIGKILL"));
  const exit = new Promise((resolve) => program.once("exit", resolve));
  const report = text(program.stdout);
  const log = [];
  for await (const line of createInterface(program.stderr)) {
    log.push(line);
    onLine?.(line, program);
  }
  const code = await exit;
  assert.notEqual(await report, "", log.join("\n"));
  return { code, agent: JSON.parse(await report).agents[0], log: log.join("\n") };
}

/** The result of an agent that has ended well. */
async function result(t, source, options) {
  const { code, agent, log } = await run(t, source, options);
  assert.equal(code, 0, log);
  return agent.result;
}

test("the agent of the README", { skip }, async (t) => {
  const within = folders(t);
  const path = join(within.data, "notes.md");
  writeFileSync(path, "milk eggs milk");
  const [, block] = readFileSync(new URL("../README.md", import.meta.url), "utf8").split("```js\n");
  const source = block.split("```")[0].replace("./toolyard-agent.mjs", LIBRARY);
  const options = ["--input", JSON.stringify({ path })];
  const { code, agent, log } = await run(t, source, { tools: "Read,Write", options, within });
  assert.deepEqual([code, agent?.result], [0, { words: 2, failed: 0 }], log);
  assert.equal(readFileSync(join(within.data, "milk.txt"), "utf8"), "2");
  assert.ok(log.includes('line="root/agent may call Read, Write"'), log);
  assert.ok(log.includes('line="fs_denied, not_started: This agent may not read'), log);
});

test("an agent reads and writes", { skip }, async (t) => {
  const told = await result(t, `
    const agent = await toolyard.connect();
    const path = data + "/notes.md";
    const size = await agent.tools.call("Write", { path, content: "milk\\n" });
    const read = await agent.tools.call("Read", { path });
    await agent.bye([agent.name, agent.input, [...agent.tools.keys()], size, read]);
  `, { options: ["--input", '{"task": 1}'] });
  assert.deepEqual(told, ["root/agent", { task: 1 }, ["Echo", "Read", "Write"], { size: 5 }, { content: "milk\n", size: 5 }]);
});

test("what is refused is an error, and the agent goes on", { skip }, async (t) => {
  const told = await result(t, `
    const agent = await toolyard.connect();
    const outcomes = await agent.tools.batch([
      ["Nothing"], ["Write", { path: data + "/a", content: "" }], ["Read", { path: "/etc/passwd" }],
      ["Read", { path: 1 }], ["Read", { path: data + "/none" }], ["Echo", { text: "x" }],
    ]);
    await agent.bye(outcomes.map((one) => one instanceof Error ? [one.name, one.slug, one.code, one.outcome] : one));
  `, { tools: "Echo,Read" });
  assert.deepEqual(told, [
    ["ToolNotFound", "tool_not_found", "not_found", "not_started"],
    ["PermissionDenied", "permission_denied", "permission_denied", "not_started"],
    ["FsDenied", "fs_denied", "fs_denied", "not_started"],
    ["InvalidArgs", "invalid_args", "invalid_input", "not_started"],
    ["ToolFailed", "tool_failed", "execution_error", "failed"],
    { text: "x" },
  ]);
});

test("console.log does no harm, nor does a subprocess", { skip }, async (t) => {
  const { agent, log } = await run(t, `
    import { execSync } from "node:child_process";
    process.stdout.write("written too early");
    const agent = await toolyard.connect();
    console.log("printed");
    console.log('{"op":"bye"}');
    process.stdout.write("written\\n");
    console.error(execSync("echo from a subprocess").toString());
    await agent.bye(await agent.tools.call("Echo", { text: "x" }));
  `);
  assert.deepEqual([agent.end, agent.result, agent.refused_lines], ["ended", { text: "x" }, 1]);
  for (const line of ["printed", "written", "from a subprocess"]) assert.ok(log.includes(`line="${line}"`), log);
});

test("the channel may be a socket", { skip }, async (t) => {
  const { code, agent, log } = await run(t, `
    import { execSync } from "node:child_process";
    const agent = await toolyard.connect();
    console.log("printed");
    execSync("echo inherited", { stdio: "inherit" });
    await agent.bye(await agent.tools.call("Echo", { text: "x" }));
  `, { channel: "fd3" });
  assert.deepEqual([code, agent.result, agent.refused_lines], [0, { text: "x" }, 0], log);
  for (const line of ["printed", "inherited"]) assert.ok(log.includes(`line="${line}"`), log);
});

test("more calls than may be in flight are answered in their order", { skip }, async (t) => {
  const told = await result(t, `
    const agent = await toolyard.connect();
    const calls = Array.from({ length: 2_500 }, (_, n) => ["Echo", { text: n + "x".repeat(1_000) }]);
    const results = await agent.tools.batch(calls);
    await agent.bye([results.length, results.every(({ text }, n) => text.startsWith(n + "x"))]);
  `);
  assert.deepEqual(told, [2_500, true]);
});

test("calls have the effect of one after another", { skip }, async (t) => {
  const told = await result(t, `
    const agent = await toolyard.connect();
    const path = data + "/a";
    const write = (content) => ["Write", { path, content }];
    await agent.tools.batch([write("1")]);
    const [old, , fresh] = await agent.tools.batch([["Read", { path }], write("2"), ["Read", { path }]]);
    await agent.turnEnd();
    const last = agent.tools.call(...write("3"));
    const after = await agent.tools.call("Read", { path }, { after: [last] });
    await agent.bye([old.content, fresh.content, after.content]);
  `);
  assert.deepEqual(told, ["1", "2", "3"]);
});

test("output comes before the end, and a cancel or a signal stops a call", { skip }, async (t) => {
  const told = await result(t, `
    const agent = await toolyard.connect({ deltas: true });
    const command = "echo begun; sleep 1000";
    const call = agent.tools.call("shell", { command });
    const texts = [];
    await (async () => {
      for await (const text of call) {
        texts.push(text);
        call.cancel();
      }
    })().catch(() => {});
    const abort = new AbortController();
    const onDelta = () => abort.abort(new Error("enough"));
    const aborted = await agent.tools.call("shell", { command }, { signal: abort.signal, onDelta }).catch((error) => error);
    await agent.bye([texts, (await call.catch((error) => error)).code, aborted.message]);
  `, { tools: "shell" });
  assert.deepEqual(told, [["begun\n"], "cancelled", "enough"]);
});

test("a supervisor that stops lets the agent end", { skip }, async (t) => {
  const { code, agent, log } = await run(t, `
    const agent = await toolyard.connect({ deltas: true });
    const told = [];
    for (let round = 0; round < 2; round += 1) {
      const call = agent.tools.call("shell", { command: "echo begun; exec sleep 1000" }, { onDelta: () => console.log("begun") });
      told.push((await call.catch((error) => error)).name);
    }
    await agent.bye(told);
  `, {
    tools: "shell",
    onLine: (line, program) => line.includes('line="begun"') && program.kill("SIGINT"),
  });
  assert.deepEqual([code, agent.result], [130, ["ToolFailed", "Shutdown"]], log);
});

test("an agent that fails says no bye", { skip }, async (t) => {
  const { code, agent, log } = await run(t, `
    const agent = await toolyard.connect();
    await agent.tools.call("Read", { path: "/etc/passwd" });
  `);
  assert.deepEqual([code, agent.end, agent.result], [1, "failed(1)", null]);
  assert.match(log, /FsDenied: This agent may not read/);
});

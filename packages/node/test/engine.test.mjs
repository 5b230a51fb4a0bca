// The engine against a scripted peer: what happens rarely, and what a program does to it.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { CallError, Closed, Deny, Edit, PermissionDenied, ProgramDied, ProgramNotFound, ProtocolError, Refused, start, ToolError, ToolFailed, tool } from "toolyard";
import { add, answer, hanging, scripted } from "./support.mjs";

test("call, batch, dispatch", () =>
  scripted("Plain", { tools: [add] }, async (engine, session) => {
    assert.deepEqual([engine.version, engine.epoch, session.agent], ["0.0.0", "e", "root"]);
    assert.equal(await session.call("add", { a: 1 }), 3);
    assert.deepEqual(await session.batch([["add", { a: 1 }], ["add", { a: 2 }, { id: "x" }]]), [3, 4]);
    const turn = await session.dispatch(answer(["t1", "add", { a: 1 }], ["t2", "add", { a: 5 }]));
    assert.deepEqual(turn.messages, [{ role: "user" }]);
    assert.deepEqual(turn.outcomes.map(({ callId, tool, value }) => [callId, tool, value]), [["t1", "add", 3], ["t2", "add", 7]]);
    await assert.rejects(session.dispatch("a text"), TypeError);
  }));

test("errors of calls", () => {
  const busy = { name: "busy", sideEffects: "read", run() { throw new ToolError("HTTP 503", { kind: "transient", retryAfterMs: 1500, outcome: "failed" }); } };
  const broken = { name: "broken", sideEffects: "read", run: async () => Promise.reject(new Error("secret")) };
  const big = { name: "big", sideEffects: "read", run: () => "x".repeat(65 * 1024 * 1024) };
  return scripted("Plain", { tools: [add, busy, broken, big] }, async (_, session) => {
    await assert.rejects(session.call("busy"), (error) => {
      const { slug, code, outcome, retryAfterMs, attempts, message } = error;
      assert.deepEqual([slug, code, outcome, retryAfterMs, attempts, message], ["tool_failed", "transient", "failed", 1500, 1, "HTTP 503"]);
      return error instanceof ToolFailed && error.stack.includes("engine.test.mjs");
    });
    const [three, internal] = await session.batch([["add", { a: 1 }], "broken"]);
    assert.deepEqual([three, internal.code], [3, "internal"]);
    await assert.rejects(session.batch(["busy"], { throws: true }), CallError);
    await assert.rejects(session.call("big"), /cannot be sent: a line has at most/);
    await assert.rejects(session.batch([["add", {}, { id: "x" }], ["add", {}, { id: "x" }]]), /once/);
    await assert.rejects(session.call("add", { a: 10n }), TypeError);
    await assert.rejects(session.call("nobody"), /no function/);
  });
});

test("what a function knows of its call", () => {
  const look = { name: "look", sideEffects: "read", run: (_, { callId, tool: name, session, agent, attempt, key, deadline }) => [callId, name, session, agent, attempt, key, deadline > new Date()] };
  return scripted("Plain", { tools: [look] }, async (engine) => {
    const session = await engine.session("s");
    const child = await session.fork({ name: "child", onlyTools: ["look"] });
    assert.deepEqual(await child.call("look", {}, { id: "c9", key: "k", timeoutMs: 30_000 }), ["c9", "look", "s", "root/child", 1, "k", true]);
    const [{ asked }] = await child.definitions("anthropic");
    assert.deepEqual([asked.to, asked.agent], ["anthropic", "root/child"]);
    await child.close();
    await session.close();
  });
});

test("tools that call tools", () => {
  const deep = { name: "deep", sideEffects: "read", run: async ({ n }, context) => (n === 0 ? 0 : 1 + (await context.call("deep", { n: n - 1 }))) };
  return scripted("Plain", { tools: [deep] }, async (_, session) => assert.equal(await session.call("deep", { n: 20 }), 20));
});

test("a turn that grows", () =>
  scripted("RefusesWhatIsAdded", { tools: [add] }, async (_, session) => {
    const turn = session.turn();
    const first = turn.call("add", { a: 1 });
    const more = turn.add([["add", { a: 2 }], ["add", { a: 3 }, { id: "mine" }]]);
    assert.deepEqual([await first, await more[0], await more[1], more[1].id], [3, 4, 5, "mine"]);
    await assert.rejects(turn.call("bad").then(), Refused);
    assert.equal((await turn.call("add", { a: 4 }).outcome).value, 6);
    assert.equal((await turn.end()).outcomes.length, 4);
    assert.throws(() => turn.call("add", { a: 1 }), TypeError);
  }));

test("what comes too late for a turn that grows", async () => {
  await scripted("EndsMeanwhile", { tools: [add] }, async (_, session) => {
    const turn = session.turn();
    const late = turn.add([["add", { a: 1 }], ["add", { a: 2 }]]);
    for (const call of late) await assert.rejects(call.then(), (error) => error instanceof Refused && error.code === "turn_closed");
    assert.deepEqual((await turn.end()).outcomes, []);
    assert.throws(() => turn.add([["add", { a: 1 }]]), TypeError);
    const ended = session.turn();
    await assert.rejects(ended.call("add", { a: 1 }).then(), Refused);
    assert.throws(() => ended.call("add", { a: 1 }), Refused);
  });
  await scripted("Plain", { tools: [add] }, async (_, session) => {
    const turn = session.turn();
    assert.equal(await turn.call("add", { a: 1 }), 3);
    turn.cancel();
    assert.equal((await turn.end()).outcomes.length, 1);
  });
});

test("a session that somebody else has closed", () =>
  scripted("IsClosed", { tools: [add] }, async (_, session) => {
    const isClosed = ({ code }) => code === "session_closed";
    await assert.rejects(session.call("add", { a: 1 }), isClosed);
    await assert.rejects(session.dispatch(answer(["t1", "add", { a: 1 }])), isClosed);
    await assert.rejects(session.turn().end(), isClosed);
    await assert.rejects(session.definitions(), isClosed);
    await session.close();
  }));

test("functions that throw what none should", () => {
  const thrown = { nothing: undefined, bare: Object.create(null), symbol: Symbol("s"), shows: { get message() { throw new Error("no"); } } };
  const fail = { name: "fail", sideEffects: "none", run({ how }) { throw thrown[how]; } };
  return scripted("Plain", { tools: [fail, add] }, async (_, session) => {
    for (const how of Object.keys(thrown)) await assert.rejects(session.call("fail", { how }), CallError);
    assert.equal(await session.call("add", { a: 1 }), 3);
  });
});

test("an answer that the engine refuses is a failure", () => {
  const busy = { name: "busy", sideEffects: "none", run() { throw new ToolError("busy", { kind: "bussy" }); } };
  return scripted("RefusesAnswers", { tools: [busy, add] }, async (_, session) => {
    await assert.rejects(session.call("busy"), /cannot be sent: no such/);
    await assert.rejects(session.call("add", { a: 1 }), /cannot be sent: no such/);
  });
});

test("a function that is refused changes nothing", () =>
  scripted("RefusesTheSecond", { tools: [add] }, async (engine, session) => {
    for (const name of ["add", "other"]) {
      await assert.rejects(engine.register({ name, sideEffects: "none", run: () => -1 }), Refused);
    }
    assert.equal(await session.call("add", { a: 1 }), 3);
    await assert.rejects(session.call("other"), /no function/);
  }));

test("a growing turn is no promise, and a log may throw", () =>
  scripted("Plain", { tools: [add], log() { throw new Error("no log"); } }, async (_, session) => {
    const turn = await Promise.resolve(session.turn());
    await assert.rejects(turn.call("nobody").then(), CallError);
    assert.equal((await turn.end()).outcomes.length, 1);
  }));

test("a program that cannot be started", { skip: process.platform === "win32" }, async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "toolyard-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const program = join(directory, "program");
  writeFileSync(program, "#!/no/such/interpreter\n", { mode: 0o755 });
  await assert.rejects(start({ program, log() {} }), ProgramNotFound);
});

test("an abort while nothing can be sent yet", () =>
  scripted("Slow", { tools: [add] }, async (_, session) => {
    const text = "x".repeat(33 * 1024 * 1024);
    const large = [0, 1, 2].map(() => session.start(answer(["t1", "add", { text }])));
    const controller = new AbortController();
    const call = session.call("add", { a: 1 }, { signal: controller.signal });
    controller.abort(new Error("enough"));
    await assert.rejects(call, /enough/);
    for (const turn of large) turn.cancel();
    await Promise.all(large);
  }));

test("cancel", async () => {
  for (const act of [
    async (session) => {
      const turn = session.start(answer(["t1", "hang", {}]));
      return { cancel: () => turn.cancel("t1"), end: turn.then(({ outcomes }) => assert.equal(outcomes[0].error.code, "cancelled")) };
    },
    async (session) => {
      const controller = new AbortController();
      const call = session.call("hang", {}, { signal: controller.signal });
      return { cancel: () => controller.abort(new Error("enough")), end: assert.rejects(call, /enough/) };
    },
  ]) {
    const { tool: hang, begun, stopped } = hanging();
    await scripted("Plain", { tools: [hang] }, async (_, session) => {
      const { cancel, end } = await act(session);
      await begun;
      cancel();
      await Promise.all([end, stopped]);
    });
  }
  await scripted("Plain", { tools: [add] }, (_, session) =>
    assert.rejects(session.call("add", { a: 1 }, { signal: AbortSignal.abort(new Error("before")) }), /before/));
});

test("output before the end", () => {
  const build = { name: "build", sideEffects: "read", run(_, context) { context.emit("a"); context.emit("b"); return "built"; } };
  return scripted("Plain", { tools: [build] }, async (_, session) => {
    const pieces = [];
    await session.dispatch(answer(["t1", "build", {}]), { onDelta: ({ text }) => pieces.push(text) });
    const turn = session.start(answer(["t1", "build", {}]), { deltas: true });
    for await (const { callId, text } of turn) pieces.push(callId + text);
    assert.deepEqual([pieces, (await turn).outcomes[0].value], [["a", "b", "t1a", "t1b"], "built"]);
    assert.throws(() => session.start(answer())[Symbol.asyncIterator](), /deltas: true/);
    const fails = session.dispatch(answer(["t1", "build", {}]), { onDelta() { throw new Error("mine"); } });
    await assert.rejects(fails, /mine/);
  });
});

test("approvals", async () => {
  async function ask(...answers) {
    const questions = [];
    const approve = async (question) => {
      questions.push(question);
      const given = answers.shift();
      return typeof given === "function" ? given() : given;
    };
    const [outcome] = await scripted("Asks", { tools: [add], approve }, (_, session) => session.outcomes([["add", { a: 1 }]]));
    return { outcome, questions };
  }
  for (const [given, value] of [[true, 3], ["always", 3], [new Edit({ a: 10 }), 12]]) {
    const { outcome, questions: [question] } = await ask(given);
    assert.equal(outcome.value, value);
    assert.deepEqual([String(question), question.changes, question.signal.aborted], ["tool: add", "+ x", true]);
  }
  for (const [given, text] of [[false, "denied: undefined"], [new Deny("not on a Friday"), "denied: not on a Friday"]]) {
    const { outcome } = await ask(given);
    assert.ok(outcome.error instanceof PermissionDenied);
    assert.equal(outcome.error.message, text);
  }
  const { outcome, questions } = await ask(new Edit({ bad: true }), true);
  assert.deepEqual([outcome.value, questions.map(({ refused }) => refused)], [3, [undefined, "these may not run"]]);
  const fails = () => { throw new Error("no terminal"); };
  for (const given of [undefined, 1, "yes", fails, new Edit(10n)]) {
    assert.ok((await ask(given)).outcome.error instanceof PermissionDenied);
  }
});

test("events", () =>
  scripted("TellsEvents", { tools: [add] }, async (engine, session) => {
    const events = engine.events(["tool.called"]);
    const first = events.next();
    await session.call("add", { a: 1 });
    const seen = [(await first).value, (await events.next()).value];
    assert.deepEqual(seen.map(({ event, seq, cursor }) => [event, seq, cursor]), [["tool.called", 0, "e.0"], ["tool.called", 1, "e.1"]]);
    await events.return();
  }));

test("a program that is not there", async () => {
  await assert.rejects(start({ program: "no/such/program" }), ProgramNotFound);
  await assert.rejects(start({ programm: "x" }), /no option 'programm'/);
});

test("a program that dies says why", async () => {
  await assert.rejects(scripted("DiesAtOnce", {}, () => {}), (error) => {
    assert.equal(error.exitCode, 2);
    return error instanceof ProgramDied && error.message.includes("there is no such key");
  });
  await scripted("DiesInTheMiddle", { tools: [add] }, async (_, session) => {
    const turn = session.start(answer(["t1", "add", { a: 1 }]));
    await assert.rejects(turn.then(), (error) => error instanceof ProgramDied && error.exitCode === 7 && error.stderr === "ERROR the machine is on fire");
    await assert.rejects(session.call("add", { a: 1 }), ProgramDied);
  });
});

test("garbage, what is new, what is refused", async () => {
  await scripted("WritesGarbage", { tools: [add] }, (_, session) => assert.rejects(session.call("add", { a: 1 }), ProtocolError));
  await scripted("SaysWhatIsNew", { tools: [add] }, async (_, session) => assert.equal(await session.call("add", { a: 1 }), 3));
  await assert.rejects(scripted("RefusesToRegister", { tools: [add, tool({ name: "other", sideEffects: "none", run: () => 1 })] }, () => {}), /the name is taken/);
  await scripted("RefusesTheTurn", { tools: [add] }, (_, session) =>
    assert.rejects(session.call("add", { a: 1 }), ({ code, message }) => code === "too_many" && message === "no; /turn: too many turns"));
});

test("use after the end", () =>
  scripted("Plain", { tools: [add] }, async (engine, session) => {
    await Promise.all([engine.close(), engine.close()]);
    for (const use of [() => session.call("add", { a: 1 }), () => engine.session(), () => session.dispatch(answer())]) {
      await assert.rejects(async () => use(), Closed);
    }
    await session.close();
  }));

test("the end waits for turns but not for ever", { skip: process.platform === "win32" }, async () => {
  const { tool: hang, begun } = hanging();
  await scripted("Deaf", { tools: [hang] }, async (engine, session) => {
    const turn = session.start(answer(["t1", "hang", {}]));
    await begun;
    await engine.close({ timeoutMs: 1, graceMs: 100 });
    await assert.rejects(turn.then(), Closed);
  });
});

test("a program that does not close its engine ends all the same", async () => {
  const peer = fileURLToPath(new URL("peer.mjs", import.meta.url));
  const text = `
    import { start } from "toolyard";
    const engine = await start({ program: [process.execPath, ${JSON.stringify(peer)}, "Plain"], tools: [{ name: "one", sideEffects: "read", run: () => 1 }] });
    console.log(await (await engine.session()).call("one"));`;
  const options = { cwd: fileURLToPath(new URL("..", import.meta.url)) };
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", text], options);
  assert.equal(stdout, "1\n");
});

test("functions come and go", () =>
  scripted("Plain", {}, async (engine, session) => {
    await engine.register(tool({ name: "late", sideEffects: "read", run: () => 1 }));
    assert.equal(await session.call("late"), 1);
    await engine.unregister("late");
    await assert.rejects(session.call("late"), /no function/);
  }));

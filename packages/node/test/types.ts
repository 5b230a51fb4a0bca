// What the types of the package allow; compiled by a test and not run.

import { CallError, connect, Deny, Edit, Image, start, tool, type Outcome, type Question, type Turn } from "toolyard";

const add = tool<{ a: number; b?: number }>({ name: "add", sideEffects: "none", run: ({ a, b = 2 }) => a + b });

async function approve(question: Question) {
  return question.tool === "add" ? true : question.changes ? new Edit({ a: 1 }) : new Deny("no");
}

export async function main(response: { choices: unknown[] }): Promise<Turn> {
  const engine = await start({
    tools: [add, { name: "draw", sideEffects: "none", run: (_: object, { signal }) => new Image(new Uint8Array(), String(signal.aborted)) }],
    approve,
    log: (text, level) => console.log(level === "warn", text.length),
  });
  const session = await engine.session("s", { capabilities: { tools: ["add"] }, limits: { session_calls: 1 } });
  const values: unknown[] = await session.batch([["add", { a: 1 }, { key: "k" }], "draw"], { signal: AbortSignal.timeout(5) });
  const outcomes: Outcome[] = await session.outcomes(["draw"]);
  for (const outcome of outcomes) {
    const error: CallError | undefined = outcome.error;
    console.log(outcome.ok ? outcome.value : outcome.error.code, error?.attempts, values.length);
  }
  for await (const { callId, text } of session.start(response, { deltas: true })) console.log(callId, text);
  for await (const event of engine.events(["tool.called"])) console.log(event.event, event.cursor);
  const growing = session.turn();
  console.log(await growing.call("add", { a: 1 }), (await growing.end()).messages);
  const remote = await connect("http://127.0.0.1:8080", { token: "t" }).session();
  // @ts-expect-error: there is no such option
  await session.call("add", {}, { timeout: 5 });
  // @ts-expect-error: there are no such side effects
  tool({ name: "x", sideEffects: "writes", run: () => 1 });
  // @ts-expect-error: it does not say what it can do
  tool({ name: "x", run: () => 1 });
  return await remote.dispatch(response, { from: "openai-chat", onDelta: (delta) => console.log(delta.text) });
}

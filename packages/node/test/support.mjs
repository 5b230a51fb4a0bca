// What tests share: engines with a scripted peer, and the real program.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { start, tool } from "toolyard";

const PEER = fileURLToPath(new URL("peer.mjs", import.meta.url));

const quiet = () => {};

/** Runs a function with an engine whose program is a script of `peer.mjs`. */
export async function scripted(script, options, act) {
  return within(await start({ program: [process.execPath, PEER, script], log: quiet, ...options }), act);
}

export const program = process.env.TOOLYARD;

/** Why tests under the real program are skipped; where CI=true they are not, and fail. */
export const skip = program || process.env.CI === "true" ? false : "TOOLYARD names no program";

/** A directory of its own for a test, with an empty configuration. */
export function workspace(t, config = "") {
  const directory = mkdtempSync(join(tmpdir(), "toolyard-"));
  t.after(() => rmSync(directory, { recursive: true }));
  writeFileSync(join(directory, "toolyard.toml"), config);
  return directory;
}

/** Runs a function with an engine of the real program. */
export async function real(t, options, act) {
  const directory = options.workspace ?? workspace(t);
  const places = { workspace: directory, config: join(directory, "toolyard.toml") };
  return within(await start({ program, log: quiet, ...places, ...options }), act);
}

async function within(engine, act) {
  try {
    return await act(engine, await engine.session());
  } finally {
    await engine.close();
  }
}

/** A model's answer as Anthropic's API gives it, with calls [id, name, input]. */
export function answer(...calls) {
  return { role: "assistant", content: calls.map(([id, name, input]) => ({ type: "tool_use", id, name, input })) };
}

export const add = tool({
  name: "add",
  description: "Adds two numbers.",
  inputSchema: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a"] },
  sideEffects: "none",
  run: ({ a, b = 2 }) => a + b,
});

/** Runs until it is cancelled; `begun` resolves when it runs, `stopped` when it has been told to stop. */
export function hanging() {
  let begin, stop;
  const begun = new Promise((resolve) => (begin = resolve));
  const stopped = new Promise((resolve) => (stop = resolve));
  const run = (_, { signal }) =>
    new Promise((_, reject) => {
      begin();
      signal.addEventListener("abort", () => {
        stop();
        reject(signal.reason);
      });
    });
  return { tool: tool({ name: "hang", sideEffects: "read", run }), begun, stopped };
}

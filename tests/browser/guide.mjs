// The agent of the guide, run as it is written: a real `toolyard serve`, Python, and a person at the page.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { launch } from "./browser.mjs";
import { click, openPage, openQuestion, serve } from "./served.mjs";

const guide = readFileSync(new URL("../../docs/guide/server.md", import.meta.url), "utf8");

/** The first block with this tag after a text of the guide. */
const block = (tag, after = "") => guide.slice(guide.indexOf(after)).split("```" + tag + "\n")[1].split("```")[0];

/** Runs a program in Python; returns what it prints. */
async function python(program, env) {
  const child = spawn("python3", ["-c", program], { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text) => (said += text));
  const code = await new Promise((resolve) => child.once("close", resolve));
  assert.equal(code, 0, said);
  return said;
}

test("the agent of the guide writes what a person allows on the page", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "toolyard-guide-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const browser = await launch();
  t.after(() => browser.close());
  const server = await serve(t, folder);
  const { page } = await openPage(browser, server);
  const agent = python(block("python"), { TOKEN: server.token, TOOLYARD: server.address });
  await openQuestion(page, "notes.md");
  await click(page, "Allow");
  const shown = block("text", "```python").trim().split("\n");
  const said = (await agent).trim().split("\n");
  assert.deepEqual([said[0], said.at(-1)], [shown[0], shown.at(-1)]);
  assert.ok(said.slice(1, -1).every((line) => /^turn 1 is (running|waiting)$/.test(line)), said.join("\n"));
  assert.equal(readFileSync(join(folder, "notes.md"), "utf8"), "milk\n");
});

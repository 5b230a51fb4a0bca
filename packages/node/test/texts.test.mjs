// The examples of README and of the guide, run as they are written; AG-15.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { program, skip, workspace } from "./support.mjs";

const PACKAGE = new URL("../", import.meta.url);
const GUIDE = new URL("../../docs/guide/packages.md", PACKAGE);

function blocks(url) {
  if (!existsSync(url)) return [];
  return [...readFileSync(url, "utf8").matchAll(/```js\n(.*?)```/gs)].map(([, text]) => text);
}

async function said(t, text) {
  // In the package, whose name then leads to itself.
  const options = { cwd: fileURLToPath(PACKAGE), env: { ...process.env, TOOLYARD_PROGRAM: program } };
  const inWorkspace = text.replace("await start({", `await start({ workspace: ${JSON.stringify(workspace(t))},`);
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", inWorkspace], options);
  assert.equal(stderr, "");
  return stdout;
}

test("the readme", { skip }, async (t) => {
  for (const text of blocks(new URL("README.md", PACKAGE))) assert.match(await said(t, text), /tool_result/);
});

test("the guide", { skip }, async (t) => {
  for (const text of blocks(GUIDE)) {
    assert.equal(text, readFileSync(new URL("examples/twenty-lines.mjs", PACKAGE), "utf8"));
    const lines = (await said(t, text)).split("\n");
    for (const line of ["3", '{"lamp":3}', "[ 'ordered 2 of lamp', 'ordered 2 of lamp' ]"]) assert.ok(lines.includes(line), line);
    assert.equal(lines.filter((line) => line.startsWith("ordering lamp")).length, 1);
  }
});

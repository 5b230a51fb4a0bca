// The live page of a server that was killed and is there again, from its journal (HT-13). The program needs the feature
// `journal`.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { assertAccessible, launch } from "./browser.mjs";
import { call, click, openPage, openQuestion, serve, shows, write } from "./served.mjs";

const folder = mkdtempSync(join(tmpdir(), "toolyard-restarted-"));
const place = mkdtempSync(join(tmpdir(), "toolyard-restarted-journal-"));
const journal = join(place, "agent.journal");
let browser;

before(async () => {
  browser = await launch();
});

after(async () => {
  await browser.close();
  for (const made of [folder, place]) rmSync(made, { recursive: true });
});

test("open turns and questions of before are on the page, and an answer counts", async (t) => {
  const first = await serve(t, folder, { journal });
  const turn = await first.turn("a", [call("list_dir", { path: "." }, "1"), write("notes.md", "milk\n", "2")]);
  const { page: before } = await openPage(browser, first);
  await openQuestion(before, "notes.md");
  await first.stop("SIGKILL");

  const second = await serve(t, folder, { journal });
  const { page, faults } = await openPage(browser, second);
  await shows(page, `Turn ${turn}`);
  await openQuestion(page, "notes.md");
  await assertAccessible(page, "a question of before");
  assert.ok(!existsSync(join(folder, "notes.md")));
  await click(page, "Allow");
  const [listed, written] = await second.results("a", turn);
  assert.deepEqual([listed.status, written.status], ["ok", "ok"]);
  assert.equal(readFileSync(join(folder, "notes.md"), "utf8"), "milk\n");
  await shows(page, "allowed, by you");
  assert.deepEqual(faults, []);
});

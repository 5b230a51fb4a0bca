// Draws the pictures of the guide: TOOLYARD_PROGRAM and the rest as in browser.mjs.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { launch, open } from "./browser.mjs";
import { lines, log } from "./log.mjs";
import { click, openPage, openQuestion, serve, shows, write } from "./served.mjs";

const pictures = fileURLToPath(new URL("../../docs/pictures/", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "toolyard-pictures-"));
mkdirSync(pictures, { recursive: true });

/** The report of a turn. */
async function turn(browser) {
  const [file, out] = [join(folder, "log.jsonl"), join(folder, "log.html")];
  writeFileSync(file, lines(log(64, { seed: 3126 })));
  execFileSync(process.env.TOOLYARD_PROGRAM, ["view", file, "--out", out]);
  const { page } = await open(browser, pathToFileURL(out).href, { width: 1400, height: 780 });
  await page.waitForSelector(".calls .row");
  await page.evaluate(() => document.querySelectorAll(".calls .row .seg-asks")[0]?.closest(".row").click());
  await page.screenshot({ path: join(pictures, "turn.png") });
}

/** The live page with questions: one that was answered, one that is looked at, one that waits. */
async function question(browser) {
  const ends = [];
  const workspace = mkdtempSync(join(folder, "workspace-"));
  writeFileSync(join(workspace, "notes.md"), "# Shopping\n\n- milk\n- eggs\n- coffee\n");
  const server = await serve({ after: (end) => ends.push(end) }, workspace);
  const { page } = await openPage(browser, server, { width: 1200, height: 560 });
  const first = await server.turn("researcher", [write("summary.md", "# Summary\n")]);
  await openQuestion(page, "summary.md");
  await click(page, "Allow");
  await server.results("researcher", first);
  await server.turn("assistant", [write("notes.md", "# Shopping\n\n- milk\n- a dozen eggs\n- bread\n- coffee\n")]);
  await openQuestion(page, "notes.md");
  await server.turn("gardener", [write("plan.md", "# Plan\n")]);
  await shows(page, "plan.md");
  await page.evaluate(() => document.activeElement?.blur());
  await page.screenshot({ path: join(pictures, "question.png") });
  await Promise.all(ends.map((end) => end()));
}

const browser = await launch();
try {
  await turn(browser);
  await question(browser);
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}

// Draws the pictures of the guide: TOOLYARD_PROGRAM and the rest as in browser.mjs. `drawn.mjs` tries it.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { launch, open } from "./browser.mjs";
import { lines, log } from "./log.mjs";
import { click, openPage, openQuestion, serve, shows, write } from "./served.mjs";

/** Where the guide has its pictures. */
export const PICTURES = fileURLToPath(new URL("../../docs/pictures/", import.meta.url));

/** The report of a turn. */
async function turn(browser, folder, pictures) {
  const [file, out] = [join(folder, "log.jsonl"), join(folder, "log.html")];
  writeFileSync(file, lines(log(64, { seed: 3126 })));
  execFileSync(process.env.TOOLYARD_PROGRAM, ["view", file, "--out", out]);
  const { page } = await open(browser, pathToFileURL(out).href, { width: 1400, height: 780 });
  await page.waitForSelector(".calls .row");
  await page.evaluate(() => document.querySelectorAll(".calls .row .seg-asks")[0]?.closest(".row").click());
  await page.screenshot({ path: join(pictures, "turn.png") });
}

/** The live page with questions: one that was answered, one that is looked at, one that waits. */
async function question(browser, folder, pictures) {
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

/** Draws all pictures into a folder. */
export async function draw(pictures) {
  mkdirSync(pictures, { recursive: true });
  const folder = mkdtempSync(join(tmpdir(), "toolyard-pictures-"));
  const browser = await launch();
  try {
    await turn(browser, folder, pictures);
    await question(browser, folder, pictures);
  } finally {
    await browser.close();
    rmSync(folder, { recursive: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await draw(PICTURES);

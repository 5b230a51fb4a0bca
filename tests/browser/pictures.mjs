// Draws the pictures of the guide: TOOLYARD_PROGRAM and the rest as in browser.mjs.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { launch, open } from "./browser.mjs";
import { lines, log } from "./log.mjs";

const pictures = fileURLToPath(new URL("../../docs/pictures/", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "toolyard-pictures-"));
const [file, out] = [join(folder, "log.jsonl"), join(folder, "log.html")];
writeFileSync(file, lines(log(64, { seed: 3126 })));
execFileSync(process.env.TOOLYARD_PROGRAM, ["view", file, "--out", out]);
mkdirSync(pictures, { recursive: true });

const browser = await launch();
const { page } = await open(browser, pathToFileURL(out).href, { width: 1400, height: 780 });
await page.waitForSelector(".calls .row");
await page.evaluate(() => document.querySelectorAll(".calls .row .seg-asks")[0]?.closest(".row").click());
await page.screenshot({ path: join(pictures, "turn.png") });
await browser.close();
rmSync(folder, { recursive: true });

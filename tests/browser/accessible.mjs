// The live page for everybody: axe finds nothing in any of its views, light and dark, wide and narrow, and nothing is wider
// than the window.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { assertAccessible, launch } from "./browser.mjs";
import { call, click, keyOf, openPage, openQuestion, serve, shows, write } from "./served.mjs";

const LOOKS = ["light", "dark"].flatMap((theme) => [1400, 400].map((width) => ({ theme, width })));

let browser;

before(async () => {
  browser = await launch();
});

after(async () => {
  await browser.close();
});

/** Checks what the page shows in each look. */
async function check(page, where) {
  for (const { theme, width } of LOOKS) {
    await page.setViewport({ width, height: 860 });
    // Without motion, so that no colour is on its way from one look to the next.
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }, { name: "prefers-reduced-motion", value: "reduce" }]);
    await page.waitForFunction((theme) => {
      const background = getComputedStyle(document.body).backgroundColor;
      return (background.match(/\d+/g).map(Number)[0] > 128) === (theme === "light");
    }, {}, theme);
    await assertAccessible(page, `${where}, ${theme}, ${width} pixels wide`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    assert.equal(wide, false, `${where}: nothing is wider than the window of ${width} pixels`);
  }
}

test("axe finds nothing in any view of the live page", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "toolyard-accessible-"));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "read.md"), "read me");
  writeFileSync(join(folder, "toolyard.toml"), '[tools.list_dir]\nrate = "1/min"\n');
  const server = await serve(t, folder, { config: join(folder, "toolyard.toml") });
  const { page, faults } = await openPage(browser, server);
  await shows(page, "No turn yet");
  await check(page, "turns, without one");
  const key = await keyOf(page);

  // One of everything: calls that ended well and badly, an agent, one that waits, questions, a breaker, a budget.
  const reads = ["read.md", "no-such-file", "read.md"].map((path, at) => call("read_file", { path }, `call_${at}`));
  const first = await server.turn("a", reads, { limits: { session_calls: 30 } });
  await server.results("a", first);
  await server.asked("POST", "/sessions/a/agents", { name: "researcher" });
  await server.send("POST", "/breakers/read_file/open", {}, key);
  await server.send("PATCH", "/pools/read", { paused: true }, key);
  await server.turn("waits", [call("list_dir", { path: "." })]);
  const second = await server.turn("a", [write("notes.md", "milk\n")]);
  await server.turn("a", [write("plan.md", "one\n")]);

  await page.waitForSelector(".calls .row");
  await check(page, "turns");
  await page.focus(".calls");
  await page.keyboard.press("ArrowDown");
  await page.waitForSelector(".details:not([hidden])");
  await check(page, "turns, with details");
  await click(page, "Now");
  await shows(page, "tool, forced open");
  await shows(page, "1 call of waits");
  await check(page, "now");
  await openQuestion(page, "notes.md");
  await check(page, "questions");
  await page.type("#reason", "not on a Friday");
  await click(page, "Deny");
  await server.results("a", second);
  await shows(page, "denied, by you");
  await check(page, "questions, with one that is settled");
  assert.deepEqual(faults, []);
  await server.stop();
  await shows(page, "No connection");
  await check(page, "without a server");
});

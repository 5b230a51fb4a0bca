// A report in a real browser: `toolyard view` of a log with 10 000 calls.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { pathToFileURL } from "node:url";
import { assertAccessible, launch, open, texts } from "./browser.mjs";
import { lines, log } from "./log.mjs";

const toolyard = process.env.TOOLYARD_PROGRAM;
const folder = mkdtempSync(join(tmpdir(), "toolyard-report-"));
let browser;

before(async () => {
  browser = await launch();
});

after(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});

/** The address of the report of these events. */
function report(name, events) {
  const [file, out] = [join(folder, `${name}.jsonl`), join(folder, `${name}.html`)];
  writeFileSync(file, lines(events));
  execFileSync(toolyard, ["view", file, "--out", out]);
  return pathToFileURL(out).href;
}

async function opened(name, events, look) {
  const { page, faults } = await open(browser, report(name, events), look);
  await page.waitForSelector(".calls .row");
  return { page, faults };
}

test("10 000 calls are shown, and only the rows that are seen are drawn", async () => {
  const { page, faults } = await opened("many", log(10_000));
  assert.match((await texts(page, ".bar .about"))[0], /^many\.jsonl, 1 turn, 10,000 calls$/);
  assert.ok((await page.$$(".calls .row")).length < 60);
  assert.equal(await page.$eval(".calls .row", (row) => row.getAttribute("aria-setsize")), "10000");
  await page.focus(".calls");
  await page.keyboard.press("End");
  await page.waitForFunction(() => document.querySelector(".details h2 small")?.textContent === "call_10000");
  assert.ok((await page.$$(".calls .row")).length < 60);
  assert.deepEqual(faults, []);
});

test("the keyboard reaches every call, its reasons and the time", async () => {
  const { page, faults } = await opened("keys", log(60));
  const active = () => page.$eval(".calls", (list) => document.getElementById(list.getAttribute("aria-activedescendant"))?.textContent);
  await page.focus(".calls");
  await page.keyboard.press("ArrowDown");
  assert.match(await active(), /call_1 *.*ok/);
  for (let presses = 0; presses < 30; presses += 1) await page.keyboard.press("ArrowDown");
  assert.match(await active(), /call_31.*Waited for earlier calls, .*had to end first/);
  const ticks = await texts(page, ".axis span");
  await page.keyboard.press("+");
  assert.notDeepEqual(await texts(page, ".axis span"), ticks);
  await page.keyboard.press("0");
  assert.deepEqual(await texts(page, ".axis span"), ticks);
  await page.focus(".details");
  await page.keyboard.press("Escape");
  assert.equal(await page.$eval(".details", (details) => details.hidden), true);
  assert.ok(await page.$eval(".calls", (list) => list === document.activeElement));
  assert.deepEqual(faults, []);
});

test("hovering a bar says why a call waited", async () => {
  const { page } = await opened("hover", log(60));
  const place = await page.$eval(".calls .seg-blocked", (line) => {
    const box = line.getBoundingClientRect();
    return { x: box.x + box.width / 2, y: box.y };
  });
  await page.mouse.move(place.x, place.y);
  assert.match((await texts(page, ".tip"))[0], /^Waited for earlier calls, .*run \d+ had to end first/);
});

test("failed calls can be picked out, and calls be found by their tools", async () => {
  const { page } = await opened("filter", log(400));
  const shown = () => page.$eval(".calls .row", (row) => Number(row.getAttribute("aria-setsize")));
  await page.evaluate(() => [...document.querySelectorAll(".choice button")].find((button) => button.textContent === "Failed").click());
  assert.ok((await shown()) < 60);
  await page.evaluate(() => [...document.querySelectorAll(".choice button")].find((button) => button.textContent === "All").click());
  await page.type(".tools input", "write_file");
  assert.ok((await shown()) < 400);
  assert.ok((await texts(page, ".calls .tool")).every((tool) => tool === "write_file"));
});

test("a text of a model is shown as it is, never as markup", async () => {
  const events = log(3).map((event) => (event.event === "tool.output_delta" ? { ...event, text: "</script><img src=x onerror=alert(1)>" } : event));
  const { page, faults } = await opened("markup", events);
  await page.focus(".calls");
  await page.keyboard.press("ArrowDown");
  assert.ok((await texts(page, ".details pre")).includes("</script><img src=x onerror=alert(1)>"));
  assert.equal(await page.$("img"), null);
  assert.deepEqual(faults, []);
});

test("no script but its own runs, not even one that is put in from outside", async () => {
  const { page } = await opened("policy", log(3));
  const ran = await page.evaluate(() => {
    const script = document.createElement("script");
    try {
      script.textContent = "window.ran = true";
      document.body.append(script);
    } catch {
      return false;
    }
    return window.ran === true;
  });
  assert.equal(ran, false);
});

for (const theme of ["light", "dark"]) {
  for (const width of [1400, 400]) {
    test(`axe finds nothing: ${theme}, ${width} pixels wide`, async () => {
      const { page, faults } = await opened(`axe-${theme}-${width}`, log(120), { theme, width });
      await assertAccessible(page, "without details");
      await page.focus(".calls");
      for (let presses = 0; presses < 12; presses += 1) await page.keyboard.press("ArrowDown");
      await assertAccessible(page, "with details");
      const background = await page.$eval("body", (body) => getComputedStyle(body).backgroundColor);
      const light = background.match(/\d+/g).map(Number)[0] > 128;
      assert.equal(light, theme === "light");
      await page.evaluate(() => document.querySelector("[aria-label='Light or dark']").click());
      const switched = await page.$eval("body", (body) => getComputedStyle(body).backgroundColor);
      assert.notEqual(switched, background);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
      assert.equal(wide, false, "nothing is wider than the window");
      assert.deepEqual(faults, []);
    });
  }
}

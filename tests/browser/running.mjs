// Turns on the live page while their calls run, in a real browser over a real `toolyard serve`: what is seen, how little of
// it is drawn, and that nothing is lost while the tab is hidden (SM-9).

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { launch } from "./browser.mjs";
import { gate } from "./gate.mjs";
import { call, click, keyOf, openPage, serve, shows, until } from "./served.mjs";

/** More rows than a window has room for. */
const DRAWN_MAX = 60;

let browser;

before(async () => {
  browser = await launch();
});

after(async () => {
  await browser.close();
});

/** A server whose tool `gate__pass` waits until it is let through. */
async function gated(t, width) {
  const folder = mkdtempSync(join(tmpdir(), "toolyard-running-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const { config, pass } = gate(folder);
  writeFileSync(join(folder, "toolyard.toml"), `${config}[pools]\nread = ${width}\n`);
  const server = await serve(t, folder, { config: join(folder, "toolyard.toml") });
  return { server, pass };
}

const passes = (count, first = 1) => Array.from({ length: count }, (_, at) => call("gate__pass", {}, `call_${first + at}`));

/** Notes from now on how many rows of calls there were at most. */
function countRows(page) {
  return page.evaluate(() => {
    window.rowsMax = 0;
    const count = () => (window.rowsMax = Math.max(window.rowsMax, document.querySelectorAll(".calls .row").length));
    new MutationObserver(count).observe(document.body, { childList: true, subtree: true });
  });
}

/** Waits until the figures of the turn are these: texts that they have, and one that they have not. */
function figures(page, has, hasNot) {
  return page.waitForFunction((has, hasNot) => {
    const text = document.querySelector(".turn .figures")?.innerText ?? "";
    return has.every((one) => text.includes(one)) && !(hasNot && text.includes(hasNot));
  }, {}, has, hasNot);
}

/** Waits until the list has as many calls, and as many of the rows that are drawn have a stretch of this kind. */
function rows(page, size, kind, count) {
  return page.waitForFunction((size, kind, count) => {
    const drawn = [...document.querySelectorAll(".calls .row")];
    const has = drawn.filter((row) => row.querySelector(`.seg-${kind}`)).length;
    return drawn[0]?.getAttribute("aria-setsize") === String(size) && has === count;
  }, {}, size, kind, count);
}

/** Waits until the details say this. */
const details = (page, text) => page.waitForFunction((wanted) => document.querySelector(".details")?.innerText.includes(wanted), {}, text);

test("a turn of a thousand calls is watched while they run", async (t) => {
  const { server, pass } = await gated(t, 20);
  const { page, faults } = await openPage(browser, server);
  await countRows(page);
  const number = await server.turn("many", passes(1000));
  await figures(page, ["1,000 calls", "1,000 open", "so far"]);
  await rows(page, 1000, "running", 20);
  await pass(300);
  await figures(page, ["1,000 calls", "700 open", "so far"]);
  await click(page, "Open");
  await rows(page, 700, "running", 20);
  // Whoever watches can look around meanwhile.
  await page.focus(".calls");
  await page.keyboard.press("End");
  await details(page, "call_1000");
  await page.keyboard.press("Home");
  await details(page, "running");
  await click(page, "Now");
  await shows(page, "680 queued");
  await shows(page, "turn 1, running, 300 of 1000");
  await click(page, "Turns");
  await pass(700);
  await figures(page, ["1,000 calls", "in all"], "open");
  await details(page, "ok");
  await click(page, "All");
  await rows(page, 1000, "running", 0);
  await shows(page, "passed");
  const results = await server.results("many", number);
  assert.equal(results.filter(({ status }) => status === "ok").length, 1000);
  assert.ok((await page.evaluate("rowsMax")) < DRAWN_MAX);
  assert.deepEqual(faults, []);
});

test("of ten thousand calls only the rows that are seen are drawn, while they wait, run and afterwards", async (t) => {
  const { server } = await gated(t, 20);
  const { page, faults } = await openPage(browser, server);
  const key = await keyOf(page);
  await countRows(page);
  await server.send("PATCH", "/pools/read", { paused: true }, key);
  const calls = Array.from({ length: 10_000 }, (_, at) => call("read_file", { path: "toolyard.toml" }, `call_${at + 1}`));
  const number = await server.turn("more", calls);
  await figures(page, ["10,000 calls", "10,000 open", "so far"]);
  await page.focus(".calls");
  await page.keyboard.press("End");
  await details(page, "call_10000");
  await details(page, "waiting");
  await server.send("PATCH", "/pools/read", { paused: false }, key);
  await figures(page, ["10,000 calls", "in all"], "open");
  await details(page, "read = 20");
  await page.keyboard.press("Home");
  await details(page, "call_1\n");
  await rows(page, 10_000, "running", 0);
  assert.equal((await server.asked("GET", `/sessions/more/turns/${number}`)).finished, 10_000);
  assert.ok((await page.evaluate("rowsMax")) < DRAWN_MAX);
  assert.deepEqual(faults, []);
});

/** The positions of the events that a page gets. */
async function positionsOf(page) {
  const positions = [];
  const client = await page.createCDPSession();
  client.on("Network.webSocketFrameReceived", ({ response }) => {
    const { id } = JSON.parse(response.payloadData);
    if (id) positions.push(Number(id.split(".")[1]));
  });
  await client.send("Network.enable");
  return positions;
}

test("a hidden tab closes its stream, and goes on without loss when it is seen again", async (t) => {
  const { server, pass } = await gated(t, 20);
  const { page, faults } = await openPage(browser, server);
  const key = await keyOf(page);
  const positions = await positionsOf(page);
  const other = await page.browserContext().newPage();
  const streams = (count) => until(`${count} streams`, async () => (await server.asked("GET", "/status", undefined, key)).streams === count);
  const finished = (count) => until(`${count} calls`, async () => (await server.asked("GET", `/sessions/hidden/turns/${number}`)).finished === count);
  const number = await server.turn("hidden", passes(400));
  for (let round = 1; round <= 4; round += 1) {
    await other.bringToFront();
    // Not by frames, of which a hidden tab has none.
    await until("hidden", () => page.evaluate("document.hidden"));
    await streams(0);
    await pass(50);
    await finished(round * 100 - 50);
    await page.bringToFront();
    await streams(1);
    await pass(50);
    await figures(page, ["400 calls"].concat(round < 4 ? [`${400 - round * 100} open`] : ["in all"]));
  }
  await shows(page, "Live");
  assert.ok(positions.length > 400 * 4, `${positions.length} events`);
  assert.deepEqual(positions, positions.map((_, at) => positions[0] + at), "none is lost, and none comes twice");
  assert.deepEqual(faults, []);
});

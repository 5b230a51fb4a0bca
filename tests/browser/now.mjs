// What the engine does now, on the live page in a real browser over a real `toolyard serve`: pools and breakers are changed
// there, and the agents of sessions are seen (CB-10, CL-7).

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { launch, texts } from "./browser.mjs";
import { gate } from "./gate.mjs";
import { call, click, keyOf, openPage, serve, shows } from "./served.mjs";

let browser;

before(async () => {
  browser = await launch();
});

after(async () => {
  await browser.close();
});

/** A server with a page at "Now", what `/status` says to its key, and how the calls of `gate__pass` are let through. */
async function now(t) {
  const folder = mkdtempSync(join(tmpdir(), "toolyard-now-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const { config, pass } = gate(folder);
  writeFileSync(join(folder, "toolyard.toml"), `${config}[pools]\nread = 2\n`);
  const server = await serve(t, folder, { config: join(folder, "toolyard.toml") });
  const { page, faults } = await openPage(browser, server);
  const key = await keyOf(page);
  await click(page, "Now");
  return { server, page, faults, key, pass, status: () => server.asked("GET", "/status", undefined, key) };
}

/** Presses the control with this name, once it is there and counts. */
function press(page, name) {
  return page.waitForFunction((label) => {
    const control = document.querySelector(`button[aria-label="${label}"]:enabled`);
    control?.click();
    return Boolean(control);
  }, {}, name);
}

/** Waits until the card of a pool has this text. */
function pool(page, kind, text) {
  return page.waitForFunction((kind, text) => {
    const cards = [...document.querySelectorAll(".pool")];
    return cards.find((card) => card.querySelector("h2").firstChild.textContent === kind)?.innerText.replace(/\s+/g, " ").includes(text);
  }, {}, kind, text);
}

/** Opens the view again, which then shows what is now. */
async function look(page) {
  await click(page, "Turns");
  await click(page, "Now");
}

const read = ({ pools }) => pools.find((one) => one.class === "read");

test("a pool is paused, goes on, is widened and narrowed", async (t) => {
  const { server, page, faults, pass, status } = await now(t);
  await pool(page, "read", "0 of 2");
  await press(page, "Pause pool read");
  await pool(page, "read", "paused");
  assert.equal(read(await status()).state, "paused");
  const number = await server.turn("a", Array.from({ length: 5 }, (_, at) => call("gate__pass", {}, `call_${at}`)));
  await look(page);
  await pool(page, "read", "5 queued");
  await press(page, "Resume pool read");
  await pool(page, "read", "2 of 2");
  await pool(page, "read", "3 queued");
  await press(page, "Widen pool read");
  await pool(page, "read", "3 of 3");
  await press(page, "Narrow pool read");
  await pool(page, "read", "of 2");
  await press(page, "Narrow pool read");
  await pool(page, "read", "of 1");
  assert.equal(read(await status()).width, 1);
  assert.ok(await page.$eval('[aria-label="Narrow pool read"]', (button) => button.disabled), "a pool has a place at least");
  await press(page, "Pause pool serial");
  await pool(page, "serial", "paused");
  await press(page, "Resume pool serial");
  await pass(5);
  assert.ok((await server.results("a", number)).every((result) => result.status === "ok"));
  await look(page);
  await pool(page, "read", "none queued");
  assert.deepEqual(faults, []);
});

test("a breaker is opened, closed and reset", async (t) => {
  const { server, page, faults, pass, status } = await now(t);
  await pass(1_000);
  const one = async () => {
    const [result] = await server.results("a", await server.turn("a", [call("gate__pass", {})]));
    return result.error?.code ?? result.status;
  };
  const state = async () => (await status()).breakers.find(({ of }) => JSON.stringify(of).includes("gate__pass"))?.state;
  assert.equal(await one(), "ok");
  await press(page, "Open the breaker of gate__pass");
  await shows(page, "tool, forced open");
  assert.deepEqual([await state(), await one()], ["forced_open", "circuit_open"]);
  await press(page, "Close the breaker of gate__pass");
  await shows(page, "tool, forced closed");
  assert.deepEqual([await state(), await one()], ["forced_closed", "ok"]);
  await press(page, "Open the breaker of gate__pass");
  await shows(page, "tool, forced open");
  await press(page, "Reset the breaker of gate__pass");
  await shows(page, "tool, closed, 0 of 0 failed");
  assert.equal(await one(), "ok");
  assert.deepEqual(faults, []);
});

test("what was refused is said, and stays said", async (t) => {
  const { server, page } = await now(t);
  await pool(page, "read", "0 of 2");
  // The page is told of a pool that the server does not have.
  await page.setRequestInterception(true);
  const asked = (request) => request.method() === "PATCH" ? request.continue({ url: `${server.address}/pools/none` }) : request.continue();
  page.on("request", asked);
  await press(page, "Widen pool read");
  await shows(page, "there is no pool 'none'");
  const polled = () => page.waitForResponse((response) => response.url().endsWith("/status"));
  await polled();
  assert.match((await texts(page, ".banner"))[0], /there is no pool 'none'/);
  page.off("request", asked);
  await page.setRequestInterception(false);
  await press(page, "Widen pool read");
  await pool(page, "read", "0 of 3");
  await page.waitForSelector(".banner", { hidden: true });
});

test("agents are a tree under their session, and lead to their turns", async (t) => {
  const { server, page, faults, pass } = await now(t);
  await server.send("POST", "/sessions", { id: "team" });
  await server.asked("POST", "/sessions/team/agents", { name: "researcher" });
  await server.asked("POST", "/sessions/team/agents?agent=root/researcher", { name: "reader" });
  const start = async (agent, ...calls) => (await server.asked("POST", `/sessions/team/turns?agent=${agent}`, { calls })).turn;
  const number = await start("root/researcher/reader", call("gate__pass", {}, "call_1"), call("gate__pass", {}, "call_2"));
  await shows(page, "turn 1, running, 0 of 2");
  const tree = await page.$$eval(".tree li", (items) => items.map((item) => [item.querySelector("span, button > span").firstChild.textContent, parseFloat(item.style.paddingLeft)]));
  assert.deepEqual(tree.map(([path]) => path), ["root", "root/researcher", "root/researcher/reader"]);
  assert.ok(tree[0][1] < tree[1][1] && tree[1][1] < tree[2][1], JSON.stringify(tree));
  // What has the focus keeps it while more happens.
  await page.focus(".tree button");
  await pass(1);
  await shows(page, "turn 1, running, 1 of 2");
  assert.match(await page.evaluate("document.activeElement.textContent"), /^root\/researcher\/reader/);
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector(".turn .where")?.textContent.startsWith("team / root/researcher/reader"));
  await pass(1);
  assert.equal((await server.results("team", number)).length, 2);
  await server.asked("DELETE", "/sessions/team");
  await click(page, "Now");
  await shows(page, "No session is open.");
  assert.deepEqual(faults, []);
});

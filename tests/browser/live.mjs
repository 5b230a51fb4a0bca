// The live page in a real browser, over a real `toolyard serve`: who signs in, and what bounds the calls.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { assertAccessible, launch, open } from "./browser.mjs";
import { call, click, keyOf, openPage, serve, shows, until, write } from "./served.mjs";

const folder = mkdtempSync(join(tmpdir(), "toolyard-live-"));
let browser;

before(async () => {
  browser = await launch();
});

after(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});

test("what bounds the calls is seen: rates, and budgets with what is used", async (t) => {
  const config = join(folder, "toolyard.toml");
  writeFileSync(config, '[tools.read_file]\nrate = "1/min"\n');
  const server = await serve(t, folder, { config });
  const { page, faults } = await openPage(browser, server);
  const number = await server.turn("frugal", [call("read_file", { path: "." })], { limits: { session_calls: 3 } });
  await server.results("frugal", number);
  await click(page, "Now");
  await shows(page, "at most 1/min");
  await shows(page, "1 of 3 calls");
  await assertAccessible(page, "what the engine does now");
  assert.deepEqual(faults, []);
});

test("what a page has missed is loaded, page by page: sessions and questions", async (t) => {
  const server = await serve(t, folder);
  const { page, faults } = await openPage(browser, server);
  for (let at = 0; at < 120; at += 1) await server.turn(`s${String(at).padStart(3, "0")}`, [write(`${at}.md`, "x")]);
  const badge = () => page.waitForFunction(() => document.querySelector(".badge")?.textContent === "120");
  await badge();
  const listed = [];
  page.on("response", (response) => listed.push(new URL(response.url()).pathname + new URL(response.url()).search.split("=")[0]));
  // The server seems to be another one, so that nothing that events have told of holds any more.
  await page.setRequestInterception(true);
  const status = await server.asked("GET", "/status", undefined, await keyOf(page));
  const other = JSON.stringify({ ...status, epoch: "0123456789abcdef" });
  page.on("request", (request) => request.url().endsWith("/status") ? request.respond({ contentType: "application/json", body: other }) : request.continue());
  await click(page, "Now");
  await until("all pages", async () => ["/sessions", "/sessions?cursor", "/confirmations", "/confirmations?cursor"].every((path) => listed.includes(path)));
  await shows(page, "and 70 more");
  await badge();
  await click(page, "Questions");
  await page.waitForFunction(() => document.querySelectorAll(".asked button").length === 120);
  assert.equal(await page.$(".settled li"), null, "none of them was settled");
  assert.deepEqual(faults, []);
});

test("a link opens one page, and a second one says so", async (t) => {
  const server = await serve(t, folder);
  await openPage(browser, server);
  const { page } = await open(browser, server.link);
  await shows(page, "This link was used before");
});

test("after a restart of the server the page says that its link has ended", async (t) => {
  const server = await serve(t, folder);
  const { page } = await openPage(browser, server);
  await server.stop();
  await shows(page, "No connection");
  await serve(t, folder, { http: new URL(server.address).host });
  await shows(page, "This link has ended");
  await page.reload();
  await shows(page, "This page needs its link");
});

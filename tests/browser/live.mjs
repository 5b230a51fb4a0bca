// The live page in a real browser, over a real `toolyard serve`: who signs in, watches and answers.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import test, { after, before } from "node:test";
import { assertAccessible, launch, open } from "./browser.mjs";

const folder = mkdtempSync(join(tmpdir(), "toolyard-live-"));
let browser;

before(async () => {
  browser = await launch();
});

after(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});

/** A server over an empty workspace, and what its callers need. */
async function serve() {
  const args = ["serve", "--http", "127.0.0.1:0", "--json", "--workspace", folder];
  const server = spawn(process.env.TOOLYARD_PROGRAM, args, { stdio: ["ignore", "pipe", "inherit"], cwd: folder });
  const [line] = await Promise.race([
    new Promise((resolve) => createInterface(server.stdout).once("line", (text) => resolve([text]))),
    new Promise((_, reject) => server.once("exit", (code) => reject(new Error(`toolyard serve ended with ${code}`)))),
  ]);
  const told = JSON.parse(line);
  const asked = async (method, path, body) => {
    const headers = { authorization: `Bearer ${told.token}`, "content-type": "application/json" };
    const response = await fetch(told.address + path, { method, headers, body: body && JSON.stringify(body) });
    return response.json();
  };
  const stop = async () => {
    server.kill("SIGINT");
    await new Promise((resolve) => server.once("exit", resolve));
  };
  return { ...told, asked, stop };
}

const write = (id, path, content) => ({ call_id: id, name: "write_file", arguments: { path, content } });

/** Starts a turn of these calls in a session of this name. */
async function turn(server, session, calls) {
  await server.asked("POST", "/sessions", { id: session });
  return (await server.asked("POST", `/sessions/${session}/turns`, { calls })).turn;
}

const ended = (server, session, number) => server.asked("GET", `/sessions/${session}/turns/${number}?wait=60&to=neutral`);

/** Clicks the first button whose text begins so, once there is one that can be clicked. */
async function click(page, text) {
  const found = (begin) => {
    const buttons = [...document.querySelectorAll("button")];
    return buttons.find((button) => button.textContent.trim().startsWith(begin) && !button.disabled && button.offsetParent);
  };
  const button = await page.waitForFunction(found, {}, text);
  await button.evaluate((element) => element.click());
}

const shows = (page, text) => page.waitForFunction((wanted) => document.body.innerText.includes(wanted), {}, text);

test("a person who opens the link allows a write, which then runs", async () => {
  const server = await serve();
  const { page, faults } = await open(browser, server.link);
  await shows(page, "Live");
  const number = await turn(server, "a", [write("call_1", "notes.md", "milk\n")]);
  await click(page, "Questions");
  await shows(page, "notes.md");
  await assertAccessible(page, "a question");
  await click(page, "Allow");
  const { results } = await ended(server, "a", number);
  assert.equal(results.results[0].status, "ok", JSON.stringify(results));
  assert.equal(readFileSync(join(folder, "notes.md"), "utf8"), "milk\n");
  assert.deepEqual(faults, []);
  await server.stop();
});

test("a no with its reason is what the model reads, and nothing is written", async () => {
  const server = await serve();
  const { page } = await open(browser, server.link);
  const number = await turn(server, "a", [write("call_1", "denied.md", "x")]);
  await click(page, "Questions");
  await shows(page, "denied.md");
  const field = await page.waitForSelector("input[type=text], textarea");
  await page.evaluate(() => {
    const fields = [...document.querySelectorAll("input, textarea")].filter((one) => one.offsetParent);
    fields.at(-1).focus();
  });
  assert.ok(field);
  await page.keyboard.type("not on a Friday");
  await click(page, "Deny");
  const { results } = await ended(server, "a", number);
  assert.equal(results.results[0].error.code, "user_denied");
  assert.match(JSON.stringify(results), /not on a Friday/);
  assert.ok(!existsSync(join(folder, "denied.md")));
  await server.stop();
});

test("a turn of a thousand calls is watched as it happens", async () => {
  const server = await serve();
  const { page, faults } = await open(browser, server.link);
  await shows(page, "Live");
  writeFileSync(join(folder, "read.md"), "read me");
  const calls = Array.from({ length: 1000 }, (_, at) => ({
    call_id: `call_${at + 1}`,
    name: "read_file",
    arguments: { path: "read.md" },
  }));
  const number = await turn(server, "many", calls);
  await ended(server, "many", number);
  await shows(page, "1,000");
  await page.waitForFunction(() => document.querySelectorAll(".calls .row").length > 0);
  assert.ok((await page.$$(".calls .row")).length < 60);
  assert.deepEqual(faults, []);
  await server.stop();
});

test("a link is good for one browser, and the page says when its server has ended", async () => {
  const server = await serve();
  const { page } = await open(browser, server.link);
  await shows(page, "Live");
  const second = await open(browser, server.link);
  await page.waitForFunction(() => true);
  await second.page.waitForFunction(() => /link/i.test(document.body.innerText));
  assert.ok(!(await second.page.evaluate(() => document.body.innerText)).includes("Live\n"));
  await server.stop();
  await page.waitForFunction(() => !/\bLive\b/.test(document.querySelector("header")?.innerText ?? document.body.innerText));
});

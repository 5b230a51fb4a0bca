// Questions on the live page in a real browser, over a real `toolyard serve`: what an answer does, and who sees it (PO-3,
// PO-4, SM-5).

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { assertAccessible, launch } from "./browser.mjs";
import { click, keyOf, openPage, openQuestion, serve, shows, write } from "./served.mjs";

const folder = mkdtempSync(join(tmpdir(), "toolyard-answers-"));
const written = (name) => readFileSync(join(folder, name), "utf8");
let browser;

before(async () => {
  browser = await launch();
});

after(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});

test("a person allows a write, which then runs", async (t) => {
  const server = await serve(t, folder);
  const { page, faults } = await openPage(browser, server);
  const turn = await server.turn("a", [write("notes.md", "milk\n")]);
  await openQuestion(page, "notes.md");
  await assertAccessible(page, "a question");
  await click(page, "Allow");
  const [result] = await server.results("a", turn);
  assert.equal(result.status, "ok", JSON.stringify(result));
  assert.equal(written("notes.md"), "milk\n");
  await shows(page, "allowed, by you");
  assert.deepEqual(faults, []);
});

test("a no with its reason is what the model reads, and nothing is written", async (t) => {
  const server = await serve(t, folder);
  const { page } = await openPage(browser, server);
  const turn = await server.turn("a", [write("denied.md", "x")]);
  await openQuestion(page, "denied.md");
  await page.type("#reason", "not on a Friday");
  await click(page, "Deny");
  const [result] = await server.results("a", turn);
  assert.equal(result.error.code, "user_denied");
  assert.match(JSON.stringify(result), /not on a Friday/);
  assert.ok(!existsSync(join(folder, "denied.md")));
});

/** Puts another text into the field for the arguments, as a person does. */
async function retype(page, text) {
  await page.focus(".sheet textarea");
  await page.keyboard.down("Control");
  await page.keyboard.press("KeyA");
  await page.keyboard.up("Control");
  await page.keyboard.type(text);
}

test("what runs is the call as it was edited, and an edit that may not run says why", async (t) => {
  const server = await serve(t, folder);
  const { page } = await openPage(browser, server);
  const turn = await server.turn("a", [write("edited.md", "of the model")]);
  await openQuestion(page, "edited.md");
  await click(page, "Edit…");
  await assertAccessible(page, "an edit");
  await retype(page, "{ path");
  await click(page, "Allow with these arguments");
  await shows(page, "Not JSON");
  await retype(page, '{"path": "../outside.md", "content": "x"}');
  await click(page, "Allow with these arguments");
  await page.waitForFunction(() => /The edit may not run: .*outside\.md/.test(document.body.innerText));
  await retype(page, '{"path": "edited.md", "content": "of a person"}');
  await click(page, "Allow with these arguments");
  const [result] = await server.results("a", turn);
  assert.equal(result.status, "ok", JSON.stringify(result));
  assert.equal(written("edited.md"), "of a person");
  assert.ok(!existsSync(join(folder, "../outside.md")));
});

test("always allows the pattern: its next call is not asked about", async (t) => {
  const server = await serve(t, folder);
  const { page } = await openPage(browser, server);
  const first = await server.turn("a", [write("list.md", "one")]);
  await openQuestion(page, "list.md");
  await click(page, "Always allow");
  assert.equal((await server.results("a", first))[0].status, "ok");
  const second = await server.turn("a", [write("list.md", "two")]);
  assert.equal((await server.results("a", second))[0].status, "ok");
  assert.equal(written("list.md"), "two");
  await shows(page, "always allowed, by you");
  await shows(page, "Nothing to decide");
  // What the pattern does not cover is asked about.
  const other = await server.turn("a", [write("other.md", "three")]);
  await openQuestion(page, "other.md");
  await click(page, "Deny");
  assert.equal((await server.results("a", other))[0].error.code, "user_denied");
});

test("never denies the pattern: its next call is not asked about, and the model reads why (KT-16)", async (t) => {
  const server = await serve(t, folder);
  const { page, faults } = await openPage(browser, server);
  const first = await server.turn("a", [write("never.md", "one")]);
  await openQuestion(page, "never.md");
  await page.waitForFunction(() => /Always and never are about: write_file .*never\.md/.test(document.body.innerText));
  await assertAccessible(page, "a question with never");
  await page.type("#reason", "it is not ours");
  await click(page, "Never allow");
  const denied = async (turn) => {
    const [result] = await server.results("a", turn);
    assert.equal(result.error.code, "user_denied");
    assert.match(JSON.stringify(result), /it is not ours/);
  };
  await denied(first);
  await shows(page, "never allowed, by you");
  await denied(await server.turn("a", [write("never.md", "two")]));
  await shows(page, "Nothing to decide");
  assert.ok(!existsSync(join(folder, "never.md")));
  // What the pattern does not cover is asked about.
  const other = await server.turn("a", [write("after-never.md", "three")]);
  await openQuestion(page, "after-never.md");
  await click(page, "Allow");
  assert.equal((await server.results("a", other))[0].status, "ok");
  assert.deepEqual(faults, []);
});

/** Another window of the same person: it gets a copy of what the first one keeps. */
async function secondWindow(page) {
  const opening = new Promise((resolve) => page.once("popup", resolve));
  await page.evaluate(() => void window.open("/", "second", "popup,width=900,height=700"));
  const second = await opening;
  await shows(second, "Live");
  return second;
}

test("what one window answers, the other one shows at once, with who and how", async (t) => {
  const server = await serve(t, folder);
  const { page: first } = await openPage(browser, server);
  const second = await secondWindow(first);
  const turn = await server.turn("a", [write("both.md", "x")]);
  await openQuestion(second, "both.md");
  await openQuestion(first, "both.md");
  await click(first, "Deny");
  await shows(second, "denied, answered elsewhere by page");
  await shows(second, "Nothing to decide");
  await shows(first, "denied, by you");
  assert.equal((await server.results("a", turn))[0].error.code, "user_denied");
});

test("what a program answers, the page shows at once; the page's own answer then comes too late", async (t) => {
  const server = await serve(t, folder);
  const { page } = await openPage(browser, server);
  const key = await keyOf(page);
  const turn = await server.turn("a", [write("program.md", "x")]);
  await openQuestion(page, "program.md");
  const { confirmations } = await server.asked("GET", "/confirmations", undefined, key);
  const [{ request_id: id, digest }] = confirmations;
  const path = `/sessions/a/turns/${turn}/confirmations/${id}`;
  assert.equal((await server.send("POST", path, { decision: "allow", digest }, key)).status, 200);
  await shows(page, "allowed, answered elsewhere by page");
  await shows(page, "Nothing to decide");
  const late = await server.send("POST", path, { decision: "deny", digest }, key);
  assert.deepEqual([late.status, late.body.code, late.body.who, late.body.decision], [409, "already_resolved", "page", "allow"]);
  assert.equal((await server.results("a", turn))[0].status, "ok");
});

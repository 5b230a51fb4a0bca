// Who has no secret of a server neither sees nor approves anything: a page of another origin or another port, even with
// a secret, and a program that a tool starts (HT-6, HT-8, HT-9).

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { launch, open } from "./browser.mjs";
import { call, click, keyOf, openPage, openQuestion, serve, write } from "./served.mjs";

const folder = mkdtempSync(join(tmpdir(), "toolyard-strangers-"));
let browser;

before(async () => {
  browser = await launch();
});

after(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});

/** The port of another server, which sends an empty page. */
async function otherPort(t) {
  const server = createServer((_, response) => response.setHeader("content-type", "text/html").end("<title>other</title>"));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return server.address().port;
}

/** What a page gets that tries everything against a server: `{name: what came of it}`. */
async function attack({ address, key, ticket, answer, body }) {
  const tried = (work) => work.then((response) => `${response.type} ${response.status}`, (error) => error.name);
  const secret = { authorization: `Bearer ${key}` };
  const json = { "content-type": "application/json" };
  const socket = new Promise((resolve) => {
    const stream = new WebSocket(`${address.replace("http", "ws")}/stream?ticket=${ticket}`);
    stream.onopen = () => resolve("open");
    stream.onerror = () => resolve("refused");
  });
  return {
    status: await tried(fetch(`${address}/status`)),
    statusWithKey: await tried(fetch(`${address}/status`, { headers: secret })),
    opaqueStatus: await tried(fetch(`${address}/status`, { mode: "no-cors", credentials: "include" })),
    answer: await tried(fetch(answer, { method: "POST", headers: json, body })),
    answerWithKey: await tried(fetch(answer, { method: "POST", headers: { ...json, ...secret }, body })),
    opaqueAnswer: await tried(fetch(answer, { method: "POST", mode: "no-cors", headers: { "content-type": "text/plain" }, body })),
    socket: await socket,
  };
}

test("a page of another origin or port can neither observe nor approve, even with the page's key", async (t) => {
  const server = await serve(t, folder);
  const { page } = await openPage(browser, server);
  const turn = await server.turn("a", [write("stranger.md", "x")]);
  await openQuestion(page, "stranger.md");
  const key = await keyOf(page);
  const [question] = (await server.asked("GET", "/confirmations", undefined, key)).confirmations;
  const answer = `${server.address}/sessions/a/turns/${turn}/confirmations/${question.request_id}`;
  const body = JSON.stringify({ decision: "allow", digest: question.digest });
  const port = await otherPort(t);
  for (const origin of [`http://127.0.0.1:${port}`, `http://localhost:${port}`]) {
    const { ticket } = await server.asked("POST", "/tickets", {}, key);
    const { page: stranger } = await open(browser, origin);
    const got = await stranger.evaluate(attack, { address: server.address, key, ticket, answer, body });
    assert.deepEqual(got, {
      status: "TypeError",
      statusWithKey: "TypeError",
      // Sent, but with nothing that the stranger could read, and no cookies to send along.
      opaqueStatus: "opaque 0",
      answer: "TypeError",
      answerWithKey: "TypeError",
      opaqueAnswer: "opaque 0",
      socket: "refused",
    }, origin);
  }
  const { confirmations } = await server.asked("GET", "/confirmations", undefined, key);
  assert.equal(confirmations.length, 1, "the question is still open");
  await click(page, "Deny");
  assert.equal((await server.results("a", turn))[0].error.code, "user_denied");
  assert.ok(!existsSync(join(folder, "stranger.md")));
});

const PROGRAM = `
  const [address, answer, body] = process.argv.slice(2);
  const json = { "content-type": "application/json" };
  const requests = [
    ["/status"], ["/confirmations"], ["/events"], ["/sessions/a"],
    ["/tickets", { method: "POST", headers: json, body: "{}" }],
    ["/page/key", { method: "POST", headers: json, body: '{"code": "a guess"}' }],
    [answer, { method: "POST", headers: json, body }],
  ];
  const got = [];
  for (const [path, request] of requests) got.push((await fetch(address + path, request)).status);
  console.log(got.join(" "), JSON.stringify(process.env));
`;

test("a program that the shell tool starts can neither observe nor approve", async (t) => {
  const config = join(folder, "toolyard.toml");
  writeFileSync(config, '[builtin]\nenable = ["write_file", "shell"]\n');
  writeFileSync(join(folder, "attack.mjs"), PROGRAM);
  const server = await serve(t, folder, { config });
  const { page } = await openPage(browser, server);
  const turn = await server.turn("a", [write("itself.md", "x")]);
  await openQuestion(page, "itself.md");
  const key = await keyOf(page);
  const [question] = (await server.asked("GET", "/confirmations", undefined, key)).confirmations;
  const answer = `/sessions/a/turns/${turn}/confirmations/${question.request_id}`;
  const body = JSON.stringify({ decision: "allow", digest: question.digest });
  const command = `node attack.mjs ${server.address} ${answer} '${body}'`;
  const attacking = await server.turn("b", [call("shell", { command })]);
  await page.waitForFunction(() => document.querySelectorAll(".asked button").length === 2);
  await page.evaluate(() => [...document.querySelectorAll(".asked button")].find((one) => one.textContent.includes("shell")).click());
  await page.waitForFunction(() => document.querySelector(".sheet h1")?.textContent.startsWith("shell"));
  await click(page, "Allow");
  const [result] = await server.results("b", attacking);
  const text = JSON.stringify(result);
  assert.match(text, /401 401 401 401 401 401 401/);
  assert.ok(!text.includes(server.token) && !text.includes(key), "its environment holds no secret");
  await openQuestion(page, "itself.md");
  await click(page, "Deny");
  assert.equal((await server.results("a", turn))[0].error.code, "user_denied");
  assert.ok(!existsSync(join(folder, "itself.md")));
});

// A real `toolyard serve`, and what its callers and the person at its page do.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { open } from "./browser.mjs";

/** Starts a server over this folder; it ends with the test. */
export async function serve(t, folder, { http = "127.0.0.1:0", config, journal } = {}) {
  const args = ["serve", "--http", http, "--json", "--workspace", folder];
  if (config) args.push("--config", config);
  if (journal) args.push("--journal", journal);
  const server = spawn(process.env.TOOLYARD_PROGRAM, args, { stdio: ["ignore", "pipe", "inherit"], cwd: folder });
  const exit = new Promise((resolve) => server.once("exit", resolve));
  const stop = (signal = "SIGINT") => {
    server.kill(signal);
    return exit;
  };
  t.after(() => stop());
  const first = new Promise((resolve) => createInterface(server.stdout).once("line", resolve));
  const line = await Promise.race([first, exit.then((code) => Promise.reject(new Error(`toolyard serve ended with ${code}`)))]);
  return new Served(JSON.parse(line), stop);
}

/** A running server. */
class Served {
  constructor({ address, link, token }, stop) {
    Object.assign(this, { address, link, token, stop });
  }

  /** A request, by default with the token for calls; returns its status and its body. */
  async send(method, path, body, secret = this.token) {
    const headers = { authorization: `Bearer ${secret}`, "content-type": "application/json" };
    const response = await fetch(this.address + path, { method, headers, body: body && JSON.stringify(body) });
    const text = await response.text();
    return { status: response.status, body: text ? JSON.parse(text) : null };
  }

  async asked(...request) {
    return (await this.send(...request)).body;
  }

  /** Starts a turn of these calls in a session of this name, which is opened with these options if it is not open. */
  async turn(session, calls, options = {}) {
    await this.send("POST", "/sessions", { id: session, ...options });
    return (await this.asked("POST", `/sessions/${session}/turns`, { calls })).turn;
  }

  /** Waits for the results of a turn. */
  async results(session, turn) {
    const { results } = await this.asked("GET", `/sessions/${session}/turns/${turn}?wait=60&to=neutral`);
    return results.results;
  }
}

/** Asks again and again until the answer is yes; after half a minute it will not be. */
export async function until(what, isSo) {
  for (const end = Date.now() + 30_000; !(await isSo()); ) {
    if (Date.now() > end) throw new Error(`not in time: ${what}`);
    await new Promise(setImmediate);
  }
}

/** A call. */
export const call = (name, args, id = "call_1") => ({ call_id: id, name, arguments: args });

/** A call that writes a file. */
export const write = (path, content, id) => call("write_file", { path, content }, id);

/** Opens the page with the link of a server. */
export async function openPage(browser, server, look) {
  const opened = await open(browser, server.link, look);
  await shows(opened.page, "Live");
  return opened;
}

/** The key of a page. */
export const keyOf = (page) => page.evaluate(() => sessionStorage.getItem("toolyard-key"));

/** Clicks the first button whose text begins so, once a click on it counts. */
export function click(page, text) {
  return page.waitForFunction((begin) => {
    const counts = (button) => !button.disabled && button.offsetParent && button.closest(".sheet:not([data-armed])") === null;
    const buttons = [...document.querySelectorAll("button")];
    const button = buttons.find((one) => one.textContent.trim().startsWith(begin) && counts(one));
    button?.click();
    return button !== undefined;
  }, {}, text);
}

/** Waits until the page has this text. */
export const shows = (page, text) => page.waitForFunction((wanted) => document.body.innerText.includes(wanted), {}, text);

/** Opens the questions, and waits until one with this text can be answered. */
export async function openQuestion(page, text) {
  await click(page, "Questions");
  await shows(page, text);
  await page.waitForSelector(".sheet[data-armed] .answers button:enabled");
}

// A real Chromium, and what is checked of every page.
//
// TOOLYARD_BROWSER_TOOLS is a folder with puppeteer-core and axe-core in its node_modules (`.ci/browser` makes it), and
// TOOLYARD_CHROMIUM the browser.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const tools = process.env.TOOLYARD_BROWSER_TOOLS;
const require = createRequire(join(tools, "package.json"));
const { default: puppeteer } = await import(pathToFileURL(require.resolve("puppeteer-core")));
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/** Starts the browser. */
export function launch() {
  return puppeteer.launch({
    executablePath: process.env.TOOLYARD_CHROMIUM ?? "/usr/bin/chromium",
    // Its own sandbox needs user namespaces, which containers of tests may lack; it opens only pages of these tests.
    args: ["--no-sandbox", "--force-color-profile=srgb"],
  });
}

/** A page of this size and theme; `faults` fills with whatever it complains about, such as what its policy forbids. */
export async function open(browser, url, { width = 1400, height = 860, theme = "light" } = {}) {
  // In a context of its own, so that no page remembers what was chosen in another one.
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  const faults = [];
  page.on("console", (message) => ["error", "warn"].includes(message.type()) && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(error.message));
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
  await page.goto(url);
  return { page, faults };
}

/** Checks that axe finds nothing on the page, whatever its severity. */
export async function assertAccessible(page, where) {
  // Through the debugger, which the page's policy does not bind.
  await page.evaluate(`${axe};0`);
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes[0].html.slice(0, 160)}`);
  });
  assert.deepEqual(found, [], where);
}

/** The texts of all elements that match. */
export function texts(page, selector) {
  return page.$$eval(selector, (elements) => elements.map((element) => element.textContent));
}

// The pictures of the guide can be drawn anew, and show something.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { launch, open } from "./browser.mjs";
import { PICTURES, draw } from "./pictures.mjs";

/** How many colours a picture has, and which share of it the most frequent one takes. */
async function look(page, file) {
  const url = `data:image/png;base64,${readFileSync(file).toString("base64")}`;
  return page.evaluate(async (url) => {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const pixels = new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer);
    const counts = new Map();
    for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
    return { width: image.width, height: image.height, colours: counts.size, most: Math.max(...counts.values()) / pixels.length };
  }, url);
}

test("the pictures of the guide are drawn, and none is blank", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "toolyard-drawn-"));
  t.after(() => rmSync(folder, { recursive: true }));
  await draw(folder);
  const names = readdirSync(folder).sort();
  assert.deepEqual(names, readdirSync(PICTURES).sort());
  const browser = await launch();
  t.after(() => browser.close());
  const { page } = await open(browser, "about:blank");
  for (const name of names) {
    const [drawn, shown] = [await look(page, join(folder, name)), await look(page, join(PICTURES, name))];
    assert.deepEqual([drawn.width, drawn.height], [shown.width, shown.height], `${name}: as large as that of the guide`);
    assert.ok(drawn.colours > 100 && drawn.most < 0.95, `${name} is blank: ${JSON.stringify(drawn)}`);
  }
});

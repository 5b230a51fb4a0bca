// usage: node scripts/pack-platform.mjs PROGRAM DIRECTORY [PLATFORM]
// Makes the package that carries a built program, such as @toolyard/linux-x64, and packs it into DIRECTORY.
// PLATFORM is that of this machine if it is left out.

import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const [program, directory, platform = `${process.platform}-${process.arch}`] = process.argv.slice(2);
if (!program || !directory) {
  console.error("usage: node scripts/pack-platform.mjs PROGRAM DIRECTORY [PLATFORM]");
  process.exit(2);
}
const [os, cpu] = platform.split("-");
const { version, license } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const description = `The program toolyard for ${platform}; the package toolyard uses it`;
const manifest = { name: `@toolyard/${platform}`, version, description, license, os: [os], cpu: [cpu], files: ["bin"] };

const made = mkdtempSync(join(tmpdir(), "toolyard-package-"));
try {
  const name = os === "win32" ? "toolyard.exe" : "toolyard";
  mkdirSync(join(made, "bin"));
  copyFileSync(program, join(made, "bin", name));
  chmodSync(join(made, "bin", name), 0o755);
  writeFileSync(join(made, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  const packed = execFileSync("npm", ["pack", "--silent", "--pack-destination", resolve(directory)], { cwd: made, encoding: "utf8" });
  console.log(join(resolve(directory), packed.trim().split("\n").pop()));
} finally {
  rmSync(made, { recursive: true });
}

// Where the program `toolyard` is.

import { accessSync, constants, statSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join, resolve } from "node:path";
import { ProgramNotFound } from "./errors.js";

const VARIABLE = "TOOLYARD_PROGRAM";
const NAME = process.platform === "win32" ? "toolyard.exe" : "toolyard";

/** The given program, that of `TOOLYARD_PROGRAM`, the one of the package for this platform, or one in PATH. */
export function findProgram(program) {
  for (const [given, whose] of [[program, "`program`"], [process.env[VARIABLE], VARIABLE]]) {
    if (!given) continue;
    const found = given.includes("/") || given.includes("\\") ? runnable(resolve(given)) : inPath(given);
    if (!found) throw new ProgramNotFound(`${whose} is '${given}', where there is no program`);
    return found;
  }
  const found = ofPackage() ?? inPath(NAME);
  if (!found) {
    const name = packageName();
    throw new ProgramNotFound(`there is no program 'toolyard': install ${name}, or set ${VARIABLE} to a built one`);
  }
  return found;
}

/** The package that carries the program for this platform. */
export function packageName() {
  return `@toolyard/${process.platform}-${process.arch}`;
}

function ofPackage() {
  try {
    return runnable(createRequire(import.meta.url).resolve(`${packageName()}/bin/${NAME}`));
  } catch {
    return undefined;
  }
}

function inPath(name) {
  for (const place of (process.env.PATH ?? "").split(delimiter)) {
    const found = place && runnable(join(place, name));
    if (found) return found;
  }
  return undefined;
}

function runnable(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile() ? path : undefined;
  } catch {
    return undefined;
  }
}

// The program as a process of this one.

import { spawn } from "node:child_process";
import { ProgramNotFound } from "./errors.js";
import { Splitter } from "./lines.js";

const TAIL_LINES = 40;
const LOG_LINE_MAX = 64 * 1024;

/** A running program: two pipes for lines, and its log, of which the last lines are kept for errors. */
export class Process {
  #child;
  #tail = [];
  #exit;
  #started;

  constructor([program, ...args], { env, log }) {
    this.#child = spawn(program, args, {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, ...env },
      // Ctrl-C in a terminal is for this program to act on, which then ends that one in good order.
      detached: process.platform !== "win32",
      windowsHide: true,
    });
    this.#exit = new Promise((ended) => this.#child.once("close", (code, signal) => ended({ code, signal })));
    this.#started = new Promise((started, failed) => {
      this.#child.once("spawn", started);
      this.#child.once("error", (cause) => failed(new ProgramNotFound(`'${program}' cannot be started: ${cause.message}`)));
    });
    this.#child.stdin.on("error", () => {});
    const lines = new Splitter((line) => this.#logged(line.toString("utf8", 0, LOG_LINE_MAX), log));
    this.#child.stderr.on("data", (piece) => lines.feed(piece));
  }

  /** Resolves when it runs; rejects with `ProgramNotFound`. */
  get started() {
    return this.#started;
  }

  get input() {
    return this.#child.stdin;
  }

  get output() {
    return this.#child.stdout;
  }

  /** Resolves to its exit code and signal, when its output has been read. */
  get exit() {
    return this.#exit;
  }

  get tail() {
    return this.#tail.join("\n");
  }

  /** Whether this program stays alive for it. */
  hold(alive) {
    for (const one of [this.#child, this.#child.stdin, this.#child.stdout, this.#child.stderr]) {
      if (alive) one.ref?.();
      else one.unref?.();
    }
  }

  /** Waits for its end; then asks it to end, and then ends it. */
  async end(patienceMs) {
    for (const signal of [undefined, "SIGTERM", "SIGKILL"]) {
      if (signal) this.#child.kill(signal);
      if (await within(this.#exit, patienceMs)) return;
    }
    // Somebody else holds its pipes.
    this.#child.stdout.destroy();
    this.#child.stderr.destroy();
  }

  #logged(line, log) {
    const text = line.trimEnd();
    this.#tail.push(text);
    if (this.#tail.length > TAIL_LINES) this.#tail.shift();
    log(text, levelOf(text));
  }
}

/** Whether a promise settles in so many milliseconds. */
export async function within(promise, ms) {
  let timer;
  const late = new Promise((resolve) => (timer = setTimeout(resolve, ms, false)));
  try {
    return await Promise.race([promise.then(() => true, () => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The level that a line of the log names among its first words. */
function levelOf(text) {
  const words = text.split(/\s+/, 3);
  if (words.includes("ERROR") || words.includes("error:")) return "error";
  if (words.includes("WARN")) return "warn";
  return "info";
}

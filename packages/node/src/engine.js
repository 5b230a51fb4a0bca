// The engine, in a program that this one starts.

import { Core } from "./core.js";
import { Closed } from "./errors.js";
import { LocalBackend } from "./local.js";
import { within } from "./process.js";
import { findProgram } from "./program.js";
import { Session } from "./session.js";
import { toolsOf } from "./tool.js";

const START_MS = 60_000;

export class Engine {
  #core;
  #closing;
  #sessions = 0;

  constructor(core, { version, epoch }) {
    this.#core = core;
    this.version = version;
    this.epoch = epoch;
  }

  async session(name = `session-${(this.#sessions += 1)}`, { capabilities, confirmations, limits } = {}) {
    const core = this.#running();
    await core.request("open", { session: name, capabilities, confirmations, limits });
    return new Session(new LocalBackend(core), { session: name });
  }

  async register(tool) {
    await this.#running().register(tool);
  }

  async unregister(name) {
    await this.#running().unregister(name);
  }

  events(kinds) {
    return this.#running().events(kinds);
  }

  /**
   * Ends the program: waits so long for turns that are open, then cancels them, for which it has `graceMs` before it is
   * made to end. Does nothing a second time.
   */
  close({ timeoutMs = 30_000, graceMs } = {}) {
    this.#closing ??= this.#close(timeoutMs, graceMs);
    return this.#closing;
  }

  async #close(timeoutMs, graceMs) {
    if (timeoutMs > 0) await within(this.#core.bye(), timeoutMs);
    await this.#core.end(graceMs);
  }

  #running() {
    if (this.#closing) throw new Closed("the engine was closed");
    return this.#core;
  }
}

if (Symbol.asyncDispose) {
  Engine.prototype[Symbol.asyncDispose] = function dispose() {
    return this.close();
  };
}

/** Starts the program, and resolves when it has taken the tools. */
export async function start(options = {}) {
  const { tools = [], config, workspace, program, args = [], approve, env, log = warn, ...unknown } = options;
  const [wrong] = Object.keys(unknown);
  if (wrong) throw new TypeError(`an engine has no option '${wrong}'`);
  const functions = toolsOf(tools);
  const [first, ...rest] = Array.isArray(program) ? program : [program];
  const command = [findProgram(first), ...rest, "serve", "--stdio"];
  if (config !== undefined) command.push("--config", pathOf(config));
  if (workspace !== undefined) command.push("--workspace", pathOf(workspace));
  const core = new Core([...command, ...args], { approve, env, log });
  try {
    const greeted = core.greet(functions);
    if (!(await within(greeted, START_MS))) throw new Closed(`the program has not answered within ${START_MS / 1000} s`);
    return new Engine(core, await greeted);
  } catch (error) {
    await core.end();
    throw error;
  }
}

function pathOf(place) {
  return place instanceof URL ? decodeURIComponent(place.pathname) : String(place);
}

/** What people should see of the program's log, and of functions that fail. */
function warn(text, level) {
  if (level !== "info") process.stderr.write(`toolyard: ${text}\n`);
}

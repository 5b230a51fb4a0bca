// Functions of this program as tools.

const SIDE_EFFECTS = ["none", "read", "write", "execute", "network"];

/**
 * Makes a tool of a function.
 *
 *     const add = tool({
 *       name: "add",
 *       description: "Adds two numbers.",
 *       inputSchema: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
 *       sideEffects: "none",
 *       run: ({ a, b }) => a + b,
 *     });
 *
 * `sideEffects` is the worst that it can do, and must be said: it decides whether calls overlap and whether
 * somebody is asked.
 */
export function tool(about) {
  const { name, run, description, inputSchema, sideEffects, timeoutMs, graceMs, ...options } = about ?? {};
  if (typeof name !== "string" || typeof run !== "function") throw new TypeError("a tool has a name, and a function `run`");
  if (!SIDE_EFFECTS.includes(sideEffects)) throw new TypeError(unsaid(name, sideEffects));
  const { concurrency, recursive, idempotent, attempts, maxConcurrency, cost, version, ...unknown } = options;
  const [wrong] = Object.keys(unknown);
  if (wrong) throw new TypeError(`a tool has no '${wrong}'`);
  const definition = {
    name,
    description,
    input_schema: inputSchema,
    side_effects: sideEffects,
    class: concurrency,
    recursive,
    idempotent,
    timeout_ms: timeoutMs,
    grace_ms: graceMs,
    attempts,
    max_concurrency: maxConcurrency,
    cost,
    version,
  };
  return Object.freeze({ name, run, definition });
}

/** Tools whose names differ. */
export function toolsOf(given) {
  const tools = [...given].map(asTool);
  const names = tools.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) < at);
  if (twice !== undefined) throw new TypeError(`several tools have the name '${twice}'`);
  return tools;
}

function unsaid(name, given) {
  const what = given === undefined ? "does not say what it can do" : `has the side effects ${String(given)}, which there are not`;
  return `${name} ${what}: write sideEffects with the worst of "none" (computes), "read", "write", "execute" (runs programs) and "network"`;
}

/** What `tool` has made, or what it takes. */
export function asTool(one) {
  return one?.definition ? one : tool(one);
}

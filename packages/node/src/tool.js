// Functions of this program as tools.

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
 * `sideEffects` is the worst that it can do, and decides whether calls overlap and whether somebody is asked. A tool that
 * does not say is taken to read, and is never tried twice.
 */
export function tool(about) {
  const { name, run, description, inputSchema, sideEffects = "read", timeoutMs, graceMs, ...options } = about;
  if (typeof name !== "string" || typeof run !== "function") throw new TypeError("a tool has a name, and a function `run`");
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
    attempts: attempts ?? (about.sideEffects === undefined ? 1 : undefined),
    max_concurrency: maxConcurrency,
    cost,
    version,
  };
  return Object.freeze({ name, run, definition });
}

/** What `tool` has made, or what it takes. */
export function asTool(one) {
  return one?.definition ? one : tool(one);
}

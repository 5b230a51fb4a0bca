// Calls that this program makes itself, and the answers of models.

/** A call as a line has it: `[tool, args, { id, key, timeoutMs, deadlineMs }]`, or the name of a tool that takes none. */
export function entryOf(call, id) {
  const [tool, args = {}, options = {}] = typeof call === "string" ? [call] : call;
  if (typeof tool !== "string") throw new TypeError("a call is the name of a tool, or a list of it, its arguments and options");
  return { tool_call_id: options.id ?? id, tool, args, meta: metaOf(options) };
}

/** How a call is to be run, as the engine reads it. */
export function metaOf({ key, timeoutMs, deadlineMs }) {
  const meta = { idempotency_key: key, timeout_ms: timeoutMs, deadline_ms: deadlineMs };
  return Object.values(meta).some((value) => value !== undefined) ? meta : undefined;
}

/** A provider's answer as JSON: an object as it is, or what an SDK's object says of itself. */
export function messageOf(response) {
  if (typeof response !== "object" || response === null) throw new TypeError("a provider's answer is an object");
  return response;
}

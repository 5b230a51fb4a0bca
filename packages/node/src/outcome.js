// What became of calls.

import { valueOf } from "./content.js";
import { callError } from "./errors.js";

/** The outcome of a `tool_response`; `isOurs` says whether a tool is a function of this program. */
export function readOutcome(message, tool, isOurs) {
  const { tool_call_id: callId, ok, result, error: slug = "tool_failed", message: text = slug, note, meta = {} } = message;
  tool = message.tool ?? tool;
  if (ok) return { callId, tool, ok: true, value: valueOf(result, isOurs(tool)), error: undefined, note, meta };
  const error = callError(text, { slug, tool, callId, meta, note });
  return { callId, tool, ok: false, value: undefined, error, note, meta };
}

/** The value of a call; throws if it has failed. */
export function unwrap(outcome) {
  if (outcome.ok) return outcome.value;
  // An answer is read in nobody's name; whoever looks for the failed call wants the place where it was made.
  Error.captureStackTrace(outcome.error, unwrap);
  throw outcome.error;
}

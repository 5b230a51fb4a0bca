// What a function returns, as the fields of a `tool_result`, and back again for who made the call.
//
// A text is text, an object is data. Any other value is shown to the model as JSON, and travels beside that as
// `{ result: value }`, so that who made the call gets the value and not its text.

import { ToolError } from "./errors.js";

/** A picture, as a tool's result or as an item of its list. */
export class Image {
  constructor(data, mediaType) {
    this.data = data;
    this.mediaType = mediaType;
  }
}

/** `result`, or `content` and `structured`; throws `ToolError` for what is no JSON. */
export function fieldsOf(value) {
  if (value instanceof Image) return { content: [part(value)] };
  if (Array.isArray(value) && value.some((one) => one instanceof Image)) return { content: value.map(part) };
  const data = plain(value);
  if (typeof data === "string") return { result: data };
  if (isObject(data) && Object.keys(data).join() !== "result") return { result: data };
  return { content: [{ type: "text", text: JSON.stringify(data) }], structured: { result: data } };
}

/** What a call has given: what the function returned, if it is `ours`; else data, a text, or a list of parts. */
export function valueOf(result, ours) {
  result ??= {};
  const names = Object.keys(result);
  if (ours && names.join() === "result") return result.result;
  const isContent = Array.isArray(result.content) && names.every((name) => name === "content" || name === "text");
  return isContent ? (result.text ?? result.content) : result;
}

/** Whether it is an object of names and values. */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function plain(value) {
  try {
    // What JSON has no word for, such as nothing, is null.
    const text = JSON.stringify(value === undefined ? null : value, known);
    if (text === undefined) throw new TypeError(`a ${typeof value}`);
    return JSON.parse(text);
  } catch (cause) {
    throw new ToolError(`the tool has returned what is no JSON: ${cause.message}`, { kind: "output_invalid" });
  }
}

function known(_name, value) {
  if (value instanceof Map) return Object.fromEntries(value);
  if (value instanceof Set) return [...value];
  return value;
}

function part(value) {
  if (value instanceof Image) {
    return { type: "image", media_type: value.mediaType, data: Buffer.from(value.data).toString("base64") };
  }
  return { type: "text", text: typeof value === "string" ? value : JSON.stringify(plain(value)) };
}

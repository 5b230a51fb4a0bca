// Lines of the protocol: one JSON object each.

import { ProtocolError } from "./errors.js";

/** Bytes of a line without its end. The program ends the conversation at a longer one. */
export const LINE_MAX = 64 * 1024 * 1024;

const UTF8 = new TextDecoder("utf-8", { fatal: true });

// Half a character is written as an escape, and only that is; a backslash of the text itself is doubled.
const HALF = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;

/** A line; throws `TypeError` or `RangeError` for what the program could not read. */
export function encode(message) {
  const text = JSON.stringify(message);
  if (HALF.test(text)) throw new TypeError("a text has half a character in it, which UTF-8 cannot express");
  const line = Buffer.from(`${text}\n`);
  if (line.length > LINE_MAX + 1) throw new RangeError(`a line has at most ${LINE_MAX} bytes, and this one has ${line.length - 1}`);
  return line;
}

/** The object of a line, or undefined for an empty one. */
export function decode(line) {
  if (line.every((byte) => byte <= 0x20)) return undefined;
  try {
    const message = JSON.parse(UTF8.decode(line));
    if (typeof message.op !== "string") throw new TypeError("it has no op");
    return message;
  } catch {
    throw new ProtocolError(`the program has written a line that is none of the protocol: ${line.toString("latin1", 0, 200)}`);
  }
}

/** Makes lines of pieces; what stands after the last line feed waits for its end. */
export class Splitter {
  #take;
  #rest = [];

  constructor(take) {
    this.#take = take;
  }

  feed(piece) {
    let start = 0;
    for (let end = piece.indexOf(10); end >= 0; end = piece.indexOf(10, start)) {
      this.#rest.push(piece.subarray(start, end));
      start = end + 1;
      this.#take(this.#rest.length === 1 ? this.#rest.pop() : Buffer.concat(this.#rest.splice(0)));
    }
    if (start < piece.length) this.#rest.push(piece.subarray(start));
  }
}

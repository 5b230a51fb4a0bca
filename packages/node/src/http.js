// The same sessions on a server, `toolyard serve`, over HTTP. Functions of this program are no tools there.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { entryOf, messageOf } from "./calls.js";
import { isObject, valueOf } from "./content.js";
import { decision, Question } from "./desk.js";
import { callError, Disconnected, ProtocolError, refused, Refused } from "./errors.js";
import { Session } from "./session.js";

/** How long one request waits for the end of a turn. */
const WAIT_S = 50;

/** How long it is not asked for again while its server is shutting down. */
const SUSPENDED_MS = 1000;

/** Requests to one server. */
class Client {
  #url;
  #token;

  constructor(url, token) {
    if (!/^https?:\/\//.test(url)) throw new TypeError(`'${url}' is no address of a server, such as http://127.0.0.1:8080`);
    this.#url = url.replace(/\/+$/, "");
    this.#token = token;
  }

  async ask(method, path, { query = {}, body, key } = {}) {
    const given = Object.entries(query).filter(([, value]) => value !== undefined);
    const url = `${this.#url}/${path.map(encodeURIComponent).join("/")}?${new URLSearchParams(given)}`;
    const headers = {
      ...(this.#token && { Authorization: `Bearer ${this.#token}` }),
      ...(body !== undefined && { "Content-Type": "application/json" }),
      ...(key && { "Idempotency-Key": key }),
    };
    let status, text;
    try {
      // A token is for the server that it was given for.
      const answer = await fetch(url, { method, headers, body: body && JSON.stringify(body), redirect: "manual" });
      [status, text] = [answer.status, await answer.text()];
    } catch (error) {
      throw new Disconnected(`${this.#url} does not answer: ${error.cause?.message ?? error.message}`);
    }
    return read(status, text);
  }

  /** A request under a key: if its answer is lost it is repeated, and nothing is done twice. */
  async askOnce(method, path, options) {
    const keyed = { ...options, key: randomUUID() };
    try {
      return await this.ask(method, path, keyed);
    } catch (error) {
      if (!(error instanceof Disconnected)) throw error;
      return this.ask(method, path, keyed);
    }
  }
}

function read(status, text) {
  let found;
  try {
    found = text === "" ? undefined : JSON.parse(text);
  } catch {
    found = undefined;
    if (status < 300) throw new ProtocolError(`the server has answered with what is no JSON: ${text.slice(0, 200)}`);
  }
  if (status < 300) return found;
  throw found?.detail ? refused(found) : new Refused(`the server has answered with the status ${status}`, { code: `http_${status}` });
}

/** A turn on a server: asks for its end until it is there. */
class RemoteTurn {
  #client;
  #path;
  #begun;
  #ended;
  #ids;

  constructor(client, session, begun, to, ids) {
    this.#client = client;
    this.#begun = begun.then((state) => {
      this.#path = ["sessions", session, "turns", String(state.turn)];
      return state;
    });
    this.#ids = ids;
    this.done = false;
    this.#ended = this.#follow(to);
    this.#ended.catch(() => {});
  }

  then(fulfilled, rejected) {
    return this.#ended.then(fulfilled, rejected);
  }

  catch(rejected) {
    return this.#ended.catch(rejected);
  }

  finally(ended) {
    return this.#ended.finally(ended);
  }

  cancel(callId) {
    const place = this.#ids.indexOf(callId);
    if (callId !== undefined && place < 0) throw new TypeError("calls of a model's answer have no names here; cancel all of the turn");
    const rest = callId === undefined ? ["cancel"] : ["calls", String(place), "cancel"];
    const sent = this.#begun.then(() => this.done || this.#client.ask("POST", [...this.#path, ...rest], { body: {} }));
    sent.catch(() => {});
  }

  [Symbol.asyncIterator]() {
    throw new TypeError("a server tells what comes before the end in its events; nothing of it comes here");
  }

  async #follow(to) {
    let state = await this.#begun;
    while (state.state !== "ended") {
      // Its server is shutting down, and answers at once.
      if (state.state === "suspended") await sleep(SUSPENDED_MS);
      state = await this.#client.ask("GET", this.#path, { query: { wait: WAIT_S, to } });
    }
    this.done = true;
    const isNeutral = state.format === "neutral" && (to ?? "neutral") === "neutral";
    const neutral = isNeutral ? state : await this.#client.ask("GET", this.#path, { query: { to: "neutral" } });
    const outcomes = (neutral.results?.results ?? []).map((entry, at) => outcomeOf(entry, this.#ids[at] ?? entry.call_id));
    return { messages: messagesOf(state.results), outcomes, number: state.turn };
  }
}

/** Some formats have one message, and the neutral one an object around its list. */
function messagesOf(results) {
  if (isObject(results)) return results.results ?? [results];
  return results ?? [];
}

/** A call's result in the neutral format. */
function outcomeOf({ name: tool, error, content = [], structured, status: _, passthrough: __, call_id: ___, ...meta }, callId) {
  if (error) {
    const about = { ...meta, ...error };
    const text = [error.message, error.advice].filter(Boolean).join("\n");
    const failed = callError(text, { slug: error.slug, tool, callId, meta: about });
    return { callId, tool, ok: false, value: undefined, error: failed, note: undefined, meta: about };
  }
  const texts = content.filter(({ type }) => type === "text").map(({ text }) => text);
  const result = isObject(structured) ? structured : { content, ...(texts.length === content.length && { text: texts.join("\n") }) };
  return { callId, tool, ok: true, value: valueOf(result, false), error: undefined, note: undefined, meta };
}

class HttpBackend {
  #client;

  constructor(client) {
    this.#client = client;
  }

  async room() {}

  respond({ session, agent }, response, { from, to }) {
    return this.#begin(session, messageOf(response), { agent, from, to }, []);
  }

  run({ session, agent }, calls) {
    const entries = calls.map((call, at) => entryOf(call, String(at + 1)));
    const body = { calls: entries.map(({ tool, args, meta }) => ({ name: tool, arguments: args, ...meta })) };
    return this.#begin(session, body, { agent, from: "neutral" }, entries.map(({ tool_call_id: id }) => id));
  }

  grow() {
    throw new TypeError("a turn on a server does not grow by calls; use `batch`, or a turn for each call");
  }

  async fork({ session, agent }, fields) {
    return (await this.#client.ask("POST", ["sessions", session, "agents"], { query: { agent }, body: fields })).agent;
  }

  definitions({ session, agent }, to) {
    return this.#client.ask("GET", ["sessions", session, "tools"], { query: { agent, as: to } });
  }

  closeSession({ session }) {
    return this.#client.ask("DELETE", ["sessions", session]);
  }

  #begin(session, body, query, ids) {
    const begun = this.#client.askOnce("POST", ["sessions", session, "turns"], { body, query });
    return new RemoteTurn(this.#client, session, begun, query.to, ids);
  }
}

/** The engine of a `toolyard serve`. Made by `connect`. */
export class RemoteEngine {
  #client;

  constructor(client) {
    this.#client = client;
  }

  async session(name, { capabilities, confirmations, limits, role, workspace } = {}) {
    const body = { id: name, capabilities, confirmations, limits, role, workspace };
    const { id } = await this.#client.ask("POST", ["sessions"], { body });
    return new Session(new HttpBackend(this.#client), { session: id });
  }

  async questions({ session } = {}) {
    const found = [];
    let cursor;
    do {
      const page = await this.#client.ask("GET", ["confirmations"], { query: { session, cursor } });
      for (const { session: of, request_id: id } of page.confirmations) {
        found.push(new Question(await this.#client.ask("GET", ["sessions", of, "confirmations", id])));
      }
      cursor = page.next ?? undefined;
    } while (cursor !== undefined);
    return found;
  }

  answer(question, answer) {
    const path = ["sessions", question.session, "turns", String(question.turn), "confirmations", question.requestId];
    return this.#client.ask("POST", path, { body: { ...decision(answer), digest: question.digest } });
  }
}

/** The engine of a server, with the same sessions over HTTP. */
export function connect(url, { token } = {}) {
  return new RemoteEngine(new Client(url, token));
}

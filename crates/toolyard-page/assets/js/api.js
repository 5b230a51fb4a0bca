// Requests to the server, with the key of this page.

const KEPT = "toolyard-key";

/** An answer that is not a success: `code`, `status` and what else the server says. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? body.title ?? `the server answered ${status}`);
    this.status = status;
    this.code = body.code ?? "";
    this.body = body;
  }
}

/** The server, as the holder of a key sees it. */
export class Api {
  constructor(key, onEnded) {
    Object.assign(this, { key, onEnded });
  }

  get(path) {
    return this.ask("GET", path);
  }

  post(path, body) {
    return this.ask("POST", path, body ?? {});
  }

  async ask(method, path, body) {
    const headers = { Authorization: `Bearer ${this.key}`, Accept: "application/json" };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer" });
    const content = await contentOf(answer);
    if (answer.ok) return content;
    if (answer.status === 401) {
      forgetKey();
      this.onEnded();
    }
    throw new Problem(answer.status, content ?? {});
  }
}

async function contentOf(answer) {
  const text = await answer.text();
  if (!text) return null;
  try {
    return JSON.parse(text);
  } catch {
    return { detail: text.slice(0, 300) };
  }
}

/** The key of this page: kept from before, or what the one-time code in its address is exchanged for. */
export async function signIn() {
  const code = /^#code=(.+)$/.exec(location.hash)?.[1];
  if (!code) return sessionStorage.getItem(KEPT);
  // The code is of no use to anybody after this, and need not stand in the history.
  history.replaceState(null, "", location.pathname);
  const answer = await fetch("/page/key", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code: decodeURIComponent(code) }), credentials: "omit" });
  const content = await contentOf(answer);
  if (!answer.ok) throw new Problem(answer.status, content ?? {});
  sessionStorage.setItem(KEPT, content.key);
  return content.key;
}

function forgetKey() {
  sessionStorage.removeItem(KEPT);
}

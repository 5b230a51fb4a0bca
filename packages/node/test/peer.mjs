// Plays `toolyard serve --stdio`, as far as a script needs it: `node peer.mjs SCRIPT serve --stdio`.
//
// `Peer` answers as the engine does, one call after another and without its rules; a script overrides what it is about.

import { createInterface } from "node:readline";

class Peer {
  deltas = false;
  invoked = new Map();
  left = new Map();
  more = new Set();
  numbers = 0;

  send(message) {
    process.stdout.write(`${JSON.stringify(message)}\n`);
  }

  async run() {
    for await (const line of createInterface({ input: process.stdin })) {
      const message = JSON.parse(line);
      this[message.op](message);
    }
  }

  // Requests

  hello({ id, deltas }) {
    this.deltas = deltas;
    this.send({ op: "welcome", id, protocol: 1, version: "0.0.0", epoch: "e", tools: [] });
  }

  open({ id, session }) {
    this.send({ op: "opened", id, session });
  }

  fork({ id, session, agent = "root", name = "1" }) {
    this.send({ op: "forked", id, session, agent: `${agent}/${name}` });
  }

  close({ id, session }) {
    this.send({ op: "closed", id, session });
  }

  definitions(asked) {
    this.send({ op: "definitions", id: asked.id, definitions: [{ asked }] });
  }

  register({ id, definition }) {
    this.send({ op: "registered", id, tool: definition.name, class: "read" });
  }

  unregister({ id, tool }) {
    this.send({ op: "unregistered", id, tool });
  }

  confirmation({ id, request_id, decision }) {
    this.send({ op: "confirmed", id, request_id, decision });
  }

  bye({ id }) {
    this.send({ op: "goodbye", id });
    process.exit(0);
  }

  // Turns

  respond(message) {
    const used = message.message.content.filter(({ type }) => type === "tool_use");
    this.begin({ ...message, calls: used.map(({ id, name, input }) => ({ tool_call_id: id, tool: name, args: input })) });
  }

  tool_calls(message) {
    const { turn, more, continues = false } = message;
    if (continues !== this.more.has(turn)) return this.refuse(message, continues ? "not_found" : "turn_open");
    if (more) this.more.add(turn);
    else this.more.delete(turn);
    this.begin(message);
  }

  turn_end(message) {
    if (!this.more.delete(message.turn)) return this.refuse(message, "turn_closed");
    this.endIfOver(message.turn);
  }

  refuse({ id, turn, op }, code, more) {
    this.send({ op: "error", id, turn, code, message: "no", refused: op, line: 1, ...more });
  }

  cancel({ turn, tool_call_id: callId }) {
    if (callId === undefined) this.more.delete(turn);
    for (const [id, [of, call]] of [...this.invoked]) {
      if (of.turn !== turn || (callId !== undefined && call.tool_call_id !== callId)) continue;
      this.send({ op: "tool_cancel", call_id: id });
    }
    this.endIfOver(turn);
  }

  begin(turn) {
    this.left.set(turn.turn, [...(this.left.get(turn.turn) ?? []), ...turn.calls]);
    for (const call of turn.calls) this.invoke(turn, call);
    this.endIfOver(turn.turn);
  }

  invoke(turn, call) {
    const id = `i${(this.numbers += 1)}`;
    this.invoked.set(id, [turn, call]);
    const { tool, args, meta = {}, tool_call_id } = call;
    const about = { session: turn.session ?? "main", agent: turn.agent ?? "root", turn: turn.turn, tool_call_id };
    const times = { attempt: 1, key: meta.idempotency_key, deadline_ms: meta.timeout_ms };
    this.send({ op: "tool_invoke", call_id: id, tool, args, ...times, ...about });
  }

  tool_result({ call_id: id, result, content, structured }) {
    const parts = content ?? [{ type: "text", text: result }];
    const texts = parts.every(({ type }) => type === "text") && { text: parts.map(({ text }) => text).join("\n") };
    const data = structured ?? (typeof result === "object" ? result : { content: parts, ...texts });
    this.respondTo(id, { ok: true, result: data, meta: { attempts: 1 } });
  }

  tool_failed({ call_id: id, message, kind, outcome, retry_after_ms }) {
    const meta = { code: kind, outcome, retry_after_ms, attempts: 1 };
    this.respondTo(id, { ok: false, error: "tool_failed", message, meta });
  }

  tool_delta({ call_id: id, text }) {
    const [turn, call] = this.invoked.get(id);
    if (this.deltas) this.send({ op: "tool_delta", turn: turn.turn, tool_call_id: call.tool_call_id, text });
  }

  respondTo(id, response) {
    const [turn, call] = this.invoked.get(id);
    this.invoked.delete(id);
    this.answer(turn, call, response);
  }

  answer(turn, call, response) {
    this.send({ op: "tool_response", turn: turn.turn, tool_call_id: call.tool_call_id, tool: call.tool, ...response });
    const left = this.left.get(turn.turn);
    left.splice(left.indexOf(call), 1);
    this.endIfOver(turn.turn);
  }

  endIfOver(turn) {
    if (this.left.get(turn)?.length !== 0 || this.more.has(turn)) return;
    this.left.delete(turn);
    this.send({ op: "turn_ended", turn, number: 1, calls: 1, failed: 0, results: [{ role: "user" }] });
  }
}

const scripts = {
  Plain: class extends Peer {},

  DiesAtOnce: class extends Peer {
    run() {
      process.stderr.write("error: toolyard.toml: there is no such key\n", () => process.exit(2));
    }
  },

  DiesInTheMiddle: class extends Peer {
    begin() {
      process.stderr.write("ERROR the machine is on fire\n", () => process.exit(7));
    }
  },

  WritesGarbage: class extends Peer {
    begin() {
      process.stdout.write("{half a line\n");
    }
  },

  SaysWhatIsNew: class extends Peer {
    begin(turn) {
      this.send({ op: "something_new", turn: turn.turn });
      process.stdout.write("\r\n  \n");
      super.begin(turn);
    }
  },

  RefusesTheTurn: class extends Peer {
    begin(turn) {
      this.refuse(turn, "too_many", { errors: [{ pointer: "/turn", detail: "too many turns" }] });
    }
  },

  RefusesWhatIsAdded: class extends Peer {
    begin(turn) {
      if (turn.calls[0]?.tool !== "bad") return super.begin(turn);
      this.refuse(turn, "invalid");
    }
  },

  // Its turn has ended when another call comes for it, as if its session had been closed.
  EndsMeanwhile: class extends Peer {
    tool_calls(message) {
      if (message.continues && this.more.delete(message.turn)) this.endIfOver(message.turn);
      super.tool_calls(message);
    }
  },

  // Its session was closed by somebody else.
  IsClosed: class extends Peer {
    begin(turn) {
      this.refuse(turn, "session_closed");
    }

    definitions(asked) {
      this.refuse(asked, "session_closed");
    }

    close(message) {
      this.refuse(message, "not_found");
    }
  },

  RefusesToRegister: class extends Peer {
    register({ id }) {
      this.send({ op: "error", id, code: "invalid", message: "the name is taken", refused: "register", line: 2 });
    }
  },

  RefusesTheSecond: class extends Peer {
    registered = 0;

    register(message) {
      if ((this.registered += 1) === 1) super.register(message);
      else this.refuse(message, "invalid");
    }
  },

  // Takes no answer that has an id, as if it were none of the protocol.
  RefusesAnswers: class extends Peer {
    tool_result({ id, op }) {
      this.send({ op: "error", id, code: "invalid", message: "no such thing", refused: op, line: 1 });
    }

    tool_failed(message) {
      if (message.id) this.tool_result(message);
      else super.tool_failed(message);
    }
  },

  // Reads nothing for a while, so that what is sent has to wait.
  Slow: class extends Peer {
    async open(message) {
      super.open(message);
      process.stdin.pause();
      setTimeout(() => process.stdin.resume(), 300);
    }
  },

  Deaf: class extends Peer {
    run() {
      process.on("SIGTERM", () => {});
      setInterval(() => {}, 1_000);
      return super.run();
    }

    bye() {}
  },

  Asks: class extends Peer {
    refused = null;

    invoke(turn, call) {
      this.asked = [turn, call];
      const about = { session: "s", agent: "root", turn: turn.turn, call_id: call.tool_call_id, tool: call.tool };
      const shown = { arguments: call.args, changes: "+ x", always: "add(*)", links: [], refused: this.refused };
      const sheet = [{ label: "tool", lines: [call.tool] }];
      this.send({ op: "confirm", request_id: "q1", digest: "d", side_effects: "write", asked_ms: 1, expires_ms: 2, sheet, ...about, ...shown });
    }

    confirmation(message) {
      const [turn, call] = this.asked;
      if (message.arguments?.bad) {
        this.send({ op: "error", id: message.id, code: "edit_refused", message: "no", refused: "confirmation", line: 1 });
        this.refused = "these may not run";
        return this.invoke(turn, call);
      }
      super.confirmation(message);
      this.send({ op: "confirm_ended", request_id: "q1", how: "answered", decision: message.decision });
      if (message.decision === "deny") {
        return this.answer(turn, call, { ok: false, error: "permission_denied", message: `denied: ${message.reason}` });
      }
      call.args = message.arguments ?? call.args;
      super.invoke(turn, call);
    }
  },

  TellsEvents: class extends Peer {
    begin(turn) {
      for (const seq of [0, 1]) this.send({ op: "event", cursor: `e.${seq}`, event: { event: "tool.called", seq } });
      this.send({ op: "event", cursor: "e.2", event: { event: "tool.completed", seq: 2 } });
      super.begin(turn);
    }
  },
};

await new scripts[process.argv[2]]().run();

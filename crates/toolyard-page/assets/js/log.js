// Folds events into lives of the engine, sessions, agents, turns and calls. The same for a report and the live page.
//
//   event ─► Life ─► Session ─► Turn ─► Call
//                       └─► agents, as a tree by their paths

import { Call, endsCall } from "./call.js";
import { Runs } from "./runs.js";

/** How many calls are kept before the oldest turns that have ended are forgotten. */
const CALLS_MAX = 250_000;

/** How many happenings of the engine are kept. */
const HAPPENINGS_MAX = 2_000;

/** One life of an engine: from its start to its end. */
class Life {
  constructor(epoch, number) {
    this.epoch = epoch;
    this.number = number;
    this.sessions = new Map();
    this.happenings = [];
    this.last = 0;
    this.wallBase = null;
  }
}

/** A session from its opening to its closing. */
class Session {
  constructor(life, name) {
    this.life = life;
    this.name = name;
    this.agents = new Map([["root", { path: "root", joined: false }]]);
    this.turns = new Map();
    this.closed = false;
  }
}

/** A turn. */
class Turn {
  constructor(session, number, agent, at) {
    this.session = session;
    this.number = number;
    this.agent = agent;
    this.started = at;
    this.ended = null;
    this.declared = null;
    this.cancelled = false;
    this.calls = [];
    this.byPlace = new Map();
    this.runs = new Map();
    this.finished = 0;
    this.failed = 0;
    this.asking = 0;
    this.version = 0;
    this.stub = null;
  }

  /** failed, ok, asks, running. */
  get state() {
    if (this.stub) return stubState(this.stub);
    if (this.ended !== null) return this.failed > 0 ? "failed" : "ok";
    return this.asking > 0 ? "asks" : "running";
  }

  /** The last moment that is known of it. */
  get until() {
    return this.ended ?? this.session.life.last;
  }
}

function stubState(stub) {
  if (stub.state === "ended") return "ok";
  return stub.state === "waiting" ? "asks" : "running";
}

/** Everything that events have said so far. */
export class Log {
  constructor() {
    this.lives = [];
    this.turnsInOrder = [];
    this.calls = 0;
    this.forgotten = 0;
    this.version = 0;
    this.shape = 0;
  }

  /** Forgets everything, as if nothing had been said. */
  clear() {
    this.lives.length = 0;
    this.turnsInOrder.length = 0;
    this.calls = 0;
    this.shape += 1;
  }

  /** The life that goes on. */
  get life() {
    if (this.lives.length === 0) this.begin("");
    return this.lives.at(-1);
  }

  /** Begins a life of the engine. */
  begin(epoch) {
    this.lives.push(new Life(epoch, this.lives.length + 1));
    this.shape += 1;
  }

  /** Takes one event; events of kinds that it does not know change nothing. */
  add(event) {
    if (event.event === "engine.started") this.begin(event.epoch);
    const life = this.life;
    life.last = Math.max(life.last, event.mono_us);
    life.wallBase ??= event.wall_ms - event.mono_us / 1000;
    this.version += 1;
    if (event.session === "@engine") {
      keepHappening(life, event);
      return null;
    }
    const session = this.session(life, event);
    if (event.event === "agent.forked") session.agents.set(event.child, { path: event.child, joined: false });
    if (event.event === "agent.joined") session.agents.set(event.child, { path: event.child, joined: true });
    if (event.event.startsWith("agent.") || event.event === "session.closed") this.shape += 1;
    if (event.event === "session.closed") session.closed = true;
    return event.turn === undefined ? null : this.ofTurn(session, event);
  }

  session(life, event) {
    const known = life.sessions.get(event.session);
    if (known && !(event.event === "session.opened" && known.closed)) return known;
    const session = new Session(life, event.session);
    // A name may be used again after its session has closed: the older one keeps its place under another key.
    if (known) life.sessions.set(`${event.session}\u0000${life.sessions.size}`, known);
    life.sessions.set(event.session, session);
    this.shape += 1;
    return session;
  }

  ofTurn(session, event) {
    const turn = this.turn(session, event);
    turn.version += 1;
    if (event.event === "turn.started") {
      turn.declared = Math.max(turn.declared ?? 0, event.calls ?? 0);
    } else if (event.event === "turn.ended") {
      turn.ended = event.mono_us;
      turn.stub = null;
    } else if (event.event === "turn.cancelled") {
      turn.cancelled = true;
    } else if (event.index !== undefined) {
      this.ofCall(turn, event);
    }
    return turn;
  }

  turn(session, event) {
    const known = session.turns.get(event.turn);
    if (known) return known;
    const turn = new Turn(session, event.turn, event.agent, event.mono_us);
    session.turns.set(event.turn, turn);
    if (!session.agents.has(event.agent)) session.agents.set(event.agent, { path: event.agent, joined: false });
    this.turnsInOrder.push(turn);
    this.shape += 1;
    return turn;
  }

  ofCall(turn, event) {
    const place = `${event.batch ?? 0}/${event.index}`;
    let call = turn.byPlace.get(place);
    if (!call) {
      call = new Call(turn, event);
      turn.byPlace.set(place, call);
      turn.calls.push(call);
      if (!turn.runs.has(call.batch)) turn.runs.set(call.batch, new Runs());
      turn.runs.get(call.batch).received(call.run);
      this.calls += 1;
      if (this.calls > CALLS_MAX) this.forget(turn);
    }
    const [ended, asked] = [call.end, call.question];
    call.add(event);
    turn.asking += (call.question ? 1 : 0) - (asked ? 1 : 0);
    if (!ended && endsCall(event.event)) {
      turn.finished += 1;
      turn.runs.get(call.batch)?.ended(call.run, event.mono_us);
      turn.failed += event.event === "tool.completed" ? 0 : 1;
    }
  }

  /** Forgets the oldest turns that have ended, but not the one that is being added to. */
  forget(current) {
    const keep = [];
    for (const turn of this.turnsInOrder) {
      const goes = this.calls > CALLS_MAX / 2 && turn !== current && turn.ended !== null;
      if (!goes) {
        keep.push(turn);
        continue;
      }
      turn.session.turns.delete(turn.number);
      this.calls -= turn.calls.length;
      this.forgotten += turn.calls.length;
    }
    this.turnsInOrder = keep;
    this.shape += 1;
  }
}

function keepHappening(life, event) {
  life.happenings.push(event);
  if (life.happenings.length > HAPPENINGS_MAX) life.happenings.shift();
}

// What is known of one call.

import { iconButton } from "./controls.js";
import { el } from "./el.js";
import { json } from "./json.js";
import { mark } from "./marks.js";
import { swatch } from "./patterns.js";
import { reason, standing } from "./reasons.js";
import { WAIT_MIN, segmentsOf } from "./segments.js";
import { brief, clock, size } from "./units.js";

const REDRAW_MS = 500;

/** The panel beside the timeline. */
export class Details {
  constructor(onClose) {
    this.onClose = onClose;
    this.call = null;
    this.node = el("aside", { class: "details", hidden: true, tabindex: 0, "aria-label": "Details of the call", on: {
      keydown: (event) => event.key === "Escape" && this.onClose(),
    } });
  }

  /** Shows a call, or none. */
  show(call, now) {
    this.node.hidden = !call;
    if (this.call !== call) this.node.scrollTop = 0;
    this.call = call;
    if (call) this.draw(now);
  }

  /** Draws it again if the call has changed; while somebody is in it, not for times that go on. */
  refresh(now) {
    const goesOn = !this.call.end && !this.node.contains(document.activeElement) && performance.now() > this.next;
    if (goesOn || this.drawn !== stateKey(this.call)) this.draw(now);
  }

  draw(now) {
    const call = this.call;
    const focused = this.node.contains(document.activeElement);
    this.drawn = stateKey(call);
    this.next = performance.now() + REDRAW_MS;
    this.node.replaceChildren(
      el("div", { class: "top" },
        el("h2", {}, call.tool || "…", el("small", {}, call.id)),
        this.actions?.(call) ?? null,
        iconButton("close", "Close the details", this.onClose)),
      el("p", { class: "verdict", "data-state": call.state }, mark(call.state), el("span", {}, verdict(call))),
      ...timesOf(call, now),
      ...questionsOf(call),
      ...outputOf(call),
      ...resultOf(call),
      ...effectsOf(call),
      ...factsOf(call));
    if (focused) this.node.focus();
  }
}

/** What of a call changes what is shown, apart from time. */
function stateKey({ state, attempts, questions, outputLength, arguments: given, result, late }) {
  return [state, attempts.length, questions.length, outputLength, Boolean(given), Boolean(result), Boolean(late)].join();
}

function verdict(call) {
  const { end } = call;
  if (end?.message) return `${end.code}: ${end.message}`;
  const words = standing(call);
  return end?.event === "tool.completed" && end.bytes !== undefined ? `${words}, ${size(end.bytes)}` : words;
}

function section(title, ...content) {
  return [el("h3", {}, title), ...content];
}

function timesOf(call, now) {
  const segments = segmentsOf(call, now).filter((segment) => segment.kind !== "setup" && (segment.to - segment.from >= WAIT_MIN || segment.attempt));
  if (segments.length === 0) return [];
  const rows = segments.flatMap((segment) => {
    const [title, more] = reason(call, segment);
    return [
      swatch(segment.kind),
      el("div", {}, title, more ? el("small", {}, more) : null),
      el("div", { class: "took" }, brief(segment.to - segment.from)),
    ];
  });
  return section("Where the time went", el("div", { class: "went" }, rows));
}

function questionsOf(call) {
  const last = call.questions.at(-1);
  if (!last) return call.arguments ? section("Arguments", pre("Arguments", json(call.arguments))) : [];
  const { event, settled } = last;
  const summary = settled?.input_summary ?? event.input_summary;
  const names = settled?.projected_modifications ?? event.projected_modifications;
  const facts = [
    names?.length > 0 && ["touches", names.join("\n")],
    settled?.digest && settled.input_summary && ["edited", "whoever approved it changed its arguments"],
    settled && ["answer", [settled.decision ?? (settled.approved ? "allow" : "none"), settled.who && `by ${settled.who}`, settled.by === "pattern" && "for all like it", settled.error].filter(Boolean).join(", ")],
    settled?.reason && ["reason", settled.reason],
  ];
  return [
    ...section("Arguments", pre("Arguments", json(call.arguments ?? summary ?? ""))),
    ...section("Question", factList(facts)),
  ];
}

function resultOf(call) {
  return call.result ? section("Result", pre("Result", call.result)) : [];
}

function pre(name, ...content) {
  return el("pre", { class: "text", tabindex: 0, role: "region", "aria-label": name }, ...content);
}

function outputOf(call) {
  const text = call.output.join("") || call.end?.partial_output;
  if (!text) return [];
  const cut = call.outputCut ? [el("p", {}, "Only the newest 64 KiB are kept.")] : [];
  return section("Output", ...cut, pre("Output", text));
}

function effectsOf(call) {
  const { end } = call;
  if (!end) return [];
  const facts = [
    end.files_modified && ["files", end.files_modified.join("\n")],
    end.command_executed && ["command", end.command_executed],
    end.usage && ["used", usage(end.usage)],
    ...Object.entries(end.metadata ?? {}).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]),
  ].filter(Boolean);
  return facts.length > 0 ? section("What it did", factList(facts)) : [];
}

function usage({ wall_ms, cpu_ms, memory_peak_bytes, net_connections, net_up_bytes, net_down_bytes }) {
  const parts = [`${brief(wall_ms * 1000)} elapsed`];
  if (cpu_ms !== undefined) parts.push(`${brief(cpu_ms * 1000)} of processor`);
  if (memory_peak_bytes !== undefined) parts.push(`${size(memory_peak_bytes)} of memory`);
  if (net_connections) parts.push(`${net_connections} connections, ${size(net_up_bytes)} sent, ${size(net_down_bytes)} got`);
  return parts.join(", ");
}

function factsOf(call) {
  const { called, end } = call;
  const life = call.turn.session.life;
  return section("Facts", factList([
    ["received", life.wallBase === null ? "" : clock(life.wallBase + call.received / 1000)],
    called && ["pool", called.class],
    called && ["effects", called.side_effects],
    end?.sandbox && ["ran in", end.sandbox],
    called?.approval && ["approval", called.approval],
    ["place", `call ${call.index}, run ${call.run}, batch ${call.batch}`],
    end?.outcome && ["effect", end.outcome.replace("_", " ")],
    end?.reason && ["because of", end.reason],
    call.bytes !== undefined && ["arguments", size(call.bytes)],
    call.late && ["late result", call.late.ok ? "ok, after it had been given up" : "failed, after it had been given up"],
    call.digest && ["digest", el("code", {}, call.digest.slice(0, 16))],
  ]));
}

function factList(facts) {
  return el("dl", { class: "facts" }, facts.filter(Boolean).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

// One question: what will run, what it would change, how long there is, and the answers.

import { diff } from "./diff.js";
import { el, setText } from "./el.js";
import { json } from "./json.js";
import { moment } from "./units.js";

/** A click within this time after a question appeared was meant for what stood there before. */
const ARMED_AFTER_MS = 350;

/** The sheet of an open question. `answer(decision, {reason, args})` sends an answer. */
export class QuestionSheet {
  constructor({ question, nowMs, answer }) {
    Object.assign(this, { nowMs, answer, armed: performance.now() + ARMED_AFTER_MS, editing: false });
    this.time = el("span", { class: "left", role: "timer" });
    this.meter = el("span", { class: "gone" });
    this.body = el("div", {});
    this.reason = el("input", { type: "text", id: "reason", placeholder: "Why not, for the model (optional)", maxlength: 2000 });
    this.editor = el("textarea", { rows: 10, spellcheck: "false", "aria-label": "Arguments as JSON" });
    this.fault = el("p", { class: "fault", role: "alert", hidden: true });
    this.heading = el("h1", { tabindex: -1 });
    this.where = el("p", { class: "where" });
    this.actions = el("div", { class: "actions" });
    this.node = el("article", { class: "sheet" },
      el("header", {}, el("div", {}, this.heading, this.where), el("div", { class: "time" }, this.time, el("span", { class: "meter", "aria-hidden": "true" }, this.meter))),
      this.body, this.fault, this.actions);
    this.update(question);
  }

  /** Shows what is known of it now; an edit that was begun stays. */
  update(question) {
    if (this.question?.digest !== question.digest) this.armed = performance.now() + ARMED_AFTER_MS;
    this.question = question;
    this.heading.replaceChildren(el("code", {}, question.tool), ` wants to ${EFFECTS[question.side_effects] ?? "run"}`);
    const agent = question.agent === "root" ? "" : ` / ${question.agent}`;
    setText(this.where, `${question.session}${agent}, turn ${question.turn}, ${question.call_id}, asked ${moment(question.asked_ms)}`);
    this.body.replaceChildren(...bodyOf(question));
    // Drawn only if other answers can be given, so that what somebody types or points at stays.
    const offers = `${question.isWhole} ${question.always}`;
    if (!this.editing && this.offers !== offers) this.draw();
    this.offers = offers;
    this.tick();
  }

  /** Nobody allows what has not been shown whole. */
  get waits() {
    return !this.question.isWhole;
  }

  draw() {
    const { question } = this;
    // A no may come at any time.
    const button = (name, kind, work) => el("button", { type: "button", class: kind, disabled: this.waits && kind !== "bare" && kind !== "danger", on: { click: () => this.press(work) } }, name);
    const no = (decision) => this.send(decision, { reason: this.reason.value.trim() });
    const deny = el("form", { class: "deny", on: { submit: (event) => {
      event.preventDefault();
      this.press(() => no("deny"));
    } } }, el("label", { class: "unseen", for: "reason" }, "Reason for no"), this.reason, el("button", { class: "danger" }, "Deny"));
    if (this.editing) {
      this.actions.replaceChildren(this.editor, el("div", { class: "answers" },
        button("Allow with these arguments", "main", () => this.sendEdit()),
        button("Leave them as they are", "bare", () => this.edit(false))));
      return;
    }
    this.actions.replaceChildren(
      el("div", { class: "answers" },
        button("Allow", "main", () => this.send("allow")),
        button("Edit…", null, () => this.edit(true)),
        question.always ? button("Always allow", null, () => this.send("always")) : null,
        question.always ? button("Never allow", "danger", () => no("never")) : null,
        deny),
      question.always ? el("p", { class: "always" }, "Always and never are about: ", el("code", {}, question.always)) : "");
  }

  press(work) {
    if (this.isArmed) work();
  }

  get isArmed() {
    return performance.now() >= this.armed;
  }

  edit(wanted) {
    this.editing = wanted;
    this.say("");
    if (wanted) this.editor.value = JSON.stringify(this.question.arguments ?? {}, null, 2);
    this.draw();
    if (wanted) this.editor.focus();
    else this.actions.querySelector("button").focus();
  }

  sendEdit() {
    let args;
    try {
      args = JSON.parse(this.editor.value);
    } catch (error) {
      this.say(`Not JSON: ${error.message}`);
      return;
    }
    if (args === null || typeof args !== "object" || Array.isArray(args)) this.say("Arguments are an object: { … }");
    else this.send("allow", { args });
  }

  async send(decision, more) {
    const buttons = [...this.node.querySelectorAll("button:enabled")];
    for (const button of buttons) button.disabled = true;
    const said = await this.answer(this.question, decision, more);
    for (const button of buttons) button.disabled = false;
    if (this.node.isConnected) this.say(said);
  }

  say(text) {
    this.fault.hidden = !text;
    setText(this.fault, text);
  }

  /** Draws how much time is left, and from when on its buttons count. */
  tick() {
    this.node.toggleAttribute("data-armed", this.isArmed);
    // To whoever does not see that they are pale.
    for (const button of this.actions.querySelectorAll("button")) button.setAttribute("aria-disabled", String(!this.isArmed));
    const { asked_ms: asked, expires_ms: expires } = this.question;
    const left = Math.max(0, expires - this.nowMs());
    const seconds = Math.ceil(left / 1000);
    setText(this.time, `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")} left`);
    this.meter.style.width = `${Math.min(100, (left / Math.max(1, expires - asked)) * 100)}%`;
    this.node.toggleAttribute("data-late", left < 30_000);
  }
}

const EFFECTS = { write: "write", execute: "execute", network: "use the network", read: "read", none: "run" };

function bodyOf(question) {
  const parts = [];
  if (question.note) parts.push(el("p", { class: "notice" }, question.note));
  if (question.refused) parts.push(el("p", { class: "notice" }, "The edit may not run: ", question.refused));
  if (question.changes) parts.push(el("h2", {}, "What it would change"), diff(question.changes));
  const links = question.links ?? [];
  if (links.length > 0) {
    parts.push(el("ul", { class: "links" }, links.map(({ path, leads_to: to }) => el("li", {}, el("code", {}, path), " is a link and leads to ", el("code", {}, to)))));
  }
  parts.push(el("h2", {}, "Arguments"), el("pre", { class: "text", tabindex: 0, role: "region", "aria-label": "Arguments" }, json(question.arguments ?? question.summary ?? {})));
  if (!question.isWhole) parts.push(el("p", { class: "where" }, "Loading the whole of it…"));
  if (question.sheet?.length > 0) parts.push(el("details", {}, el("summary", {}, "All that will run"), sheetOf(question.sheet)));
  return parts;
}

function sheetOf(sheet) {
  return el("dl", { class: "facts" }, sheet.flatMap(({ label, lines }) => [
    el("dt", {}, label),
    el("dd", {}, el("code", { class: "lines" }, lines.join("\n"))),
  ]));
}

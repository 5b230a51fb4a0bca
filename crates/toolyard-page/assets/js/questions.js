// The questions: the open ones, the one that is looked at, and how the last ones were settled.

import { el, keepFocus, setText } from "./el.js";
import { mark } from "./marks.js";
import { QuestionSheet } from "./question-sheet.js";

/** How much of what a question is about stands in the list. */
const SUBJECT_MAX = 120;

/** The view of all questions. */
export class Questions {
  constructor({ desk, nowMs }) {
    Object.assign(this, { desk, nowMs, sheet: null, chosen: null });
    this.list = el("ul", { class: "asked", "aria-label": "Open questions" });
    this.settled = el("ul", { class: "settled", "aria-label": "Settled questions" });
    this.settledTitle = el("h2", {}, "Settled");
    this.said = el("p", { class: "unseen", role: "status" });
    this.place = el("section", { class: "place", "aria-label": "Question" });
    this.node = el("div", { class: "view questions", hidden: true },
      el("nav", { class: "desk", "aria-label": "Questions" }, el("h2", {}, "Open"), this.list, this.settledTitle, this.settled),
      this.place, this.said);
  }

  /** Draws what has changed. */
  refresh() {
    const open = [...this.desk.open.values()].sort((one, other) => one.asked_ms - other.asked_ms);
    const had = this.chosen;
    if (!this.desk.open.has(this.chosen)) this.chosen = open[0]?.request_id ?? null;
    keepFocus(this.list, () => this.list.replaceChildren(...open.map((question) => this.entry(question))));
    if (open.length === 0) this.list.append(el("li", { class: "none" }, "None"));
    this.settledTitle.hidden = this.desk.settled.length === 0;
    this.settled.replaceChildren(...this.desk.settled.map(settledEntry));
    this.drawSheet(had);
  }

  entry(question) {
    const chosen = question.request_id === this.chosen;
    return el("li", {}, el("button", {
      type: "button",
      class: "bare",
      "aria-current": chosen ? "true" : null,
      "data-control": question.request_id,
      on: { click: () => this.choose(question.request_id) },
    }, mark("asks"), el("code", {}, question.tool), subject(question), el("small", {}, `${question.session}, turn ${question.turn}`)));
  }

  choose(id) {
    this.chosen = id;
    this.refresh();
    this.list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
    this.sheet?.heading.focus();
  }

  drawSheet(had) {
    const question = this.desk.open.get(this.chosen);
    if (!question) {
      const focused = this.place.contains(document.activeElement);
      const title = el("h1", { tabindex: -1 }, "Nothing to decide");
      if (this.sheet || !this.place.firstChild) this.place.replaceChildren(el("div", { class: "note" }, title, "When a call needs approval, it appears here and waits for you."));
      this.sheet = null;
      if (focused) title.focus();
      return;
    }
    if (!this.sheet || this.sheet.question.request_id !== question.request_id) {
      const focused = this.place.contains(document.activeElement) && had !== null;
      this.sheet = new QuestionSheet({ question, nowMs: this.nowMs, answer: (...given) => this.answer(...given) });
      this.place.replaceChildren(this.sheet.node);
      this.place.scrollTop = 0;
      // The answer that was given last must not be given to this question by the same key.
      if (focused) this.sheet.heading.focus();
    } else if (this.sheet.question !== question) {
      this.sheet.update(question);
    }
    if (!question.isWhole) this.desk.whole(question);
  }

  async answer(...given) {
    const said = await this.desk.answer(...given);
    setText(this.said, said);
    return said;
  }

  tick() {
    if (!this.node.hidden) this.sheet?.tick();
  }
}

/** What a question is about: the first text among its arguments, such as a path or a command. */
function subject({ arguments: args, summary }) {
  const text = Object.values(args ?? parsed(summary) ?? {}).find((value) => typeof value === "string");
  return text ? el("small", { class: "subject" }, text.slice(0, SUBJECT_MAX)) : null;
}

/** What an event tells of arguments, unless it was cut. */
function parsed(summary) {
  try {
    return JSON.parse(summary);
  } catch {
    return null;
  }
}

const STATES = { allow: "ok", always: "ok", deny: "refused", never: "refused" };
const WORDS = { allow: "allowed", always: "always allowed", deny: "denied", never: "never allowed" };

function settledEntry({ question, decision, who, why, mine, by }) {
  const how = WORDS[decision] ?? why ?? "not answered";
  const whom = mine ? "by you" : by === "pattern" ? "by an answer to another question" : who ? `answered elsewhere by ${who}` : "";
  return el("li", {}, mark(STATES[decision] ?? "suspended"), el("code", {}, question.tool), subject(question), el("small", {}, [how, whom].filter(Boolean).join(", ")));
}

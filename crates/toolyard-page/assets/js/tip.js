// The small note beside the pointer. It repeats what rows and details say in words, so it is silent.

import { el } from "./el.js";

/** A note that follows the pointer. */
export class Tip {
  constructor() {
    this.node = el("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  }

  show(x, y, [title, more]) {
    this.node.replaceChildren(el("b", {}, title), more || "");
    this.node.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = this.node;
    this.node.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - width - 8))}px`;
    this.node.style.top = `${y + 18 + height > innerHeight ? y - height - 10 : y + 18}px`;
  }

  hide() {
    this.node.hidden = true;
  }
}

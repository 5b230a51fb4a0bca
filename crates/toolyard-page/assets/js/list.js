// A long list of which only the rows that are seen exist, with the keys and roles that people expect of a list.
//
// The list has the focus and names its active row (aria-activedescendant); rows say where they stand among all.

import { el } from "./el.js";

const AROUND = 6;

/** Options: label, rowHeight, role ("listbox" or "tree"), render(item, row, index), onActive(item), onOpen(item), keys. */
export class List {
  constructor(options) {
    this.options = options;
    this.items = [];
    this.active = -1;
    this.rows = new Map();
    this.free = [];
    this.prefix = `row-${(List.made = (List.made ?? 0) + 1)}-`;
    this.space = el("div", { class: "space", role: "presentation" });
    this.node = el("div", {
      class: `list ${options.class ?? ""}`,
      role: options.role ?? "listbox",
      tabindex: 0,
      "aria-label": options.label,
      on: {
        scroll: () => this.soon(false),
        keydown: (event) => this.key(event),
        click: (event) => this.click(event),
      },
    }, this.space);
    this.pending = 0;
    new ResizeObserver(() => this.draw()).observe(this.node);
  }

  /** Shows these items; the active one stays the same item, if it is still there. */
  setItems(items) {
    const active = this.items[this.active];
    const same = active === undefined ? -1 : this.options.same
      ? items.findIndex((item) => this.options.same(item, active))
      : items.indexOf(active);
    this.items = items;
    this.active = same;
    this.space.style.height = `${items.length * this.options.rowHeight}px`;
    this.draw();
  }

  /** Draws once in the next frame: all rows, or only those that came into sight. */
  soon(all = true) {
    this.stale ||= all;
    this.pending ||= requestAnimationFrame(() => this.draw(this.stale));
  }

  draw(all = true) {
    cancelAnimationFrame(this.pending);
    this.pending = 0;
    this.stale = false;
    const { rowHeight } = this.options;
    const first = Math.max(0, Math.floor(this.node.scrollTop / rowHeight) - AROUND);
    const last = Math.min(this.items.length, Math.ceil((this.node.scrollTop + this.node.clientHeight) / rowHeight) + AROUND);
    for (const [index, row] of this.rows) {
      if (index >= first && index < last) continue;
      this.rows.delete(index);
      row.remove();
      this.free.push(row);
    }
    for (let index = first; index < last; index += 1) {
      if (all || !this.rows.has(index)) this.drawRow(index);
    }
    const named = this.active >= first && this.active < last;
    if (named) this.node.setAttribute("aria-activedescendant", this.prefix + this.active);
    else this.node.removeAttribute("aria-activedescendant");
  }

  drawRow(index) {
    let row = this.rows.get(index);
    if (!row) {
      const { role, rowHeight } = this.options;
      row = this.free.pop() ?? el("div", { class: "row", role: role === "tree" ? "treeitem" : "option" });
      row.style.height = `${rowHeight}px`;
      row.style.top = `${index * rowHeight}px`;
      row.id = this.prefix + index;
      row.dataset.index = index;
      this.rows.set(index, row);
      this.space.append(row);
    }
    row.setAttribute("aria-posinset", index + 1);
    row.setAttribute("aria-setsize", this.items.length);
    row.setAttribute("aria-selected", index === this.active);
    row.toggleAttribute("data-active", index === this.active);
    this.options.render(this.items[index], row, index);
  }

  /** Makes an item the active one, and shows it. */
  activate(index, quiet = false) {
    if (this.items.length === 0) return;
    this.active = Math.min(Math.max(index, 0), this.items.length - 1);
    this.reveal(this.active);
    this.draw();
    if (!quiet) this.options.onActive?.(this.items[this.active]);
  }

  reveal(index) {
    const { rowHeight } = this.options;
    const top = index * rowHeight;
    if (top < this.node.scrollTop) this.node.scrollTop = top;
    const over = top + rowHeight - this.node.clientHeight;
    if (over > this.node.scrollTop) this.node.scrollTop = over;
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(this.node.clientHeight / this.options.rowHeight) - 1);
    const to = {
      ArrowDown: this.active + 1,
      ArrowUp: this.active < 0 ? this.items.length - 1 : this.active - 1,
      PageDown: this.active + page,
      PageUp: this.active - page,
      Home: 0,
      End: this.items.length - 1,
    }[event.key];
    if (to !== undefined) {
      this.activate(to);
    } else if (event.key === "Enter" || event.key === " ") {
      if (this.active >= 0) this.options.onOpen?.(this.items[this.active]);
    } else if (!this.options.keys?.(event)) {
      return;
    }
    event.preventDefault();
  }

  click(event) {
    const row = event.target.closest(".row");
    if (!row) return;
    this.activate(Number(row.dataset.index));
    this.options.onOpen?.(this.items[this.active]);
  }
}

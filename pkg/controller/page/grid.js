/* A table of any length: only the rows in sight are elements, and these are used again while it scrolls.
 * Arrow keys, Page Up and Down, Home and End move the row that is meant; Enter opens it. */
import { element, oncePerFrame, setAttribute, setText } from "./dom.js";

const SPARE = 6; /* rows drawn above and below what is in sight */
let grids = 0;

/* Nothing comes last, whichever way it is sorted. */
function compareBy(value, down) {
  const way = down ? -1 : 1;
  return (a, b) => {
    const x = value(a), y = value(b);
    if (x === y) return 0;
    if (x === null || x === undefined) return 1;
    if (y === null || y === undefined) return -1;
    return x < y ? -way : way;
  };
}

export class Grid {
  /* columns: { id, title, value(row) to sort by, make(cell) returns fill(row), number, down: sorts so at first }.
   * key(row) is a row's name, that stays; open(row) is called for the row that was chosen; sorted() after a sort. */
  constructor({ label, className, columns, key, open, sort, sorted }) {
    Object.assign(this, { columns, key, open, sort, sorted });
    this.id = `grid${++grids}`;
    this.rows = [];
    this.pool = [];
    this.active = null; /* key of the row that is meant */
    this.head = element("div", { class: "grid-head", role: "rowgroup" },
      element("div", { class: "grid-row", role: "row", "aria-rowindex": "1" }, ...columns.map((c, i) => this.title(c, i))));
    this.space = element("div", { class: "grid-space", role: "rowgroup" });
    this.element = element("div", { class: `grid ${className}`, role: "grid", tabindex: "0", "aria-label": label, "aria-colcount": columns.length,
      onkeydown: e => this.pressed(e), onclick: e => this.clicked(e) }, this.head, this.space);
    this.sorter = this.makeSorter();
    this.draw = oncePerFrame(() => this.drawNow());
    this.element.addEventListener("scroll", this.draw, { passive: true });
    this.sizes = new ResizeObserver(() => this.resized());
    this.sizes.observe(this.element);
  }

  stop() {
    this.sizes.disconnect();
  }

  /* --- titles, and their like where there is no room for them --- */
  title(column, index) {
    const button = element("button", { type: "button", onclick: () => this.sortBy(column.id) }, column.title);
    return element("div", { role: "columnheader", class: `${column.id}${column.number ? " number" : ""}`, "aria-colindex": index + 1 }, button);
  }

  makeSorter() {
    this.choice = element("select", { onchange: () => this.sortBy(this.choice.value, false) },
      ...this.columns.map(c => element("option", { value: c.id }, c.title)));
    this.way = element("button", { type: "button", class: "plain", onclick: () => this.sortBy(this.sort.id) });
    return element("span", { class: "grid-sorter" }, element("label", {}, "Sort by ", this.choice), this.way);
  }

  sortBy(id, turn = true) {
    const column = this.columns.find(c => c.id === id);
    const same = this.sort.id === id;
    this.sort = { id, down: same && turn ? !this.sort.down : Boolean(column.down) };
    this.setRows(this.rows);
    this.element.scrollTop = 0;
    this.sorted?.(this.sort);
  }

  showSort() {
    [...this.head.firstChild.children].forEach((title, i) => {
      const on = this.columns[i].id === this.sort.id;
      setAttribute(title, "aria-sort", on ? (this.sort.down ? "descending" : "ascending") : "none");
    });
    this.choice.value = this.sort.id;
    setText(this.way, this.sort.down ? "↓" : "↑");
    setAttribute(this.way, "aria-label", this.sort.down ? "Descending; turn the order" : "Ascending; turn the order");
  }

  /* --- rows --- */
  setRows(rows) {
    const column = this.columns.find(c => c.id === this.sort.id);
    const byColumn = compareBy(column.value, this.sort.down), byKey = compareBy(this.key, false);
    this.rows = rows.slice().sort((a, b) => byColumn(a, b) || byKey(a, b));
    this.showSort();
    setAttribute(this.element, "aria-rowcount", String(this.rows.length + 1));
    this.measure();
    this.drawNow();
  }

  measure() {
    this.height = parseFloat(getComputedStyle(this.element).getPropertyValue("--row")) || 48;
    this.space.style.height = `${this.rows.length * this.height}px`;
  }

  resized() {
    this.measure();
    this.drawNow();
  }

  drawNow() {
    const top = this.element.scrollTop, head = this.head.offsetHeight;
    const first = Math.max(0, Math.floor(top / this.height) - SPARE);
    const count = Math.min(this.rows.length - first, Math.ceil((this.element.clientHeight - head) / this.height) + 2 * SPARE);
    while (this.pool.length < count) this.pool.push(this.makeRow());
    for (let i = first; i < first + count; i++) this.fill(this.pool[i % this.pool.length], i);
    /* Which of the pool is used for a row depends on its number alone, so that a step of scrolling fills one row. */
    this.pool.forEach((line, slot) => {
      const used = line.index >= first && line.index < first + count && line.index % this.pool.length === slot;
      line.element.hidden = !used;
    });
    this.meant();
  }

  makeRow() {
    const cells = this.columns.map((column, i) =>
      element("div", { role: "gridcell", class: `${column.id}${column.number ? " number" : ""}`, "data-title": column.title, "aria-colindex": i + 1 }));
    const line = { element: element("div", { class: "grid-row", role: "row" }, ...cells), index: -1 };
    line.fills = this.columns.map((column, i) => column.make(cells[i]));
    this.space.append(line.element);
    return line;
  }

  fill(line, index) {
    const row = this.rows[index], key = this.key(row);
    if (line.index !== index) {
      line.index = index;
      line.element.style.transform = `translateY(${index * this.height}px)`;
      line.element.id = `${this.id}-${index}`;
      line.element.setAttribute("aria-rowindex", index + 2);
    } else if (line.height !== this.height) {
      line.element.style.transform = `translateY(${index * this.height}px)`;
    }
    line.height = this.height;
    if (line.row !== row) {
      line.row = row;
      for (const fill of line.fills) fill(row);
    }
    line.element.classList.toggle("active", key === this.active);
    setAttribute(line.element, "aria-selected", key === this.active ? "true" : "false");
  }

  /* Says which row is meant, as long as it is in sight. */
  meant() {
    const line = this.pool.find(l => !l.element.hidden && l.row && this.key(l.row) === this.active);
    setAttribute(this.element, "aria-activedescendant", line ? line.element.id : null);
  }

  /* --- keys and mouse --- */
  activate(index) {
    if (this.rows.length === 0) return;
    const at = Math.min(Math.max(index, 0), this.rows.length - 1);
    this.active = this.key(this.rows[at]);
    const top = at * this.height, room = this.element.clientHeight - this.head.offsetHeight;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + this.height > this.element.scrollTop + room) this.element.scrollTop = top + this.height - room;
    this.drawNow();
  }

  pressed(event) {
    if (event.target !== this.element || event.altKey || event.ctrlKey || event.metaKey) return;
    const at = this.rows.findIndex(row => this.key(row) === this.active);
    const page = Math.max(1, Math.floor((this.element.clientHeight - this.head.offsetHeight) / this.height) - 1);
    const to = { ArrowDown: at + 1, ArrowUp: Math.max(at, 1) - 1, PageDown: Math.max(at, 0) + page, PageUp: at - page, Home: 0, End: this.rows.length - 1 }[event.key];
    if (to !== undefined) this.activate(to);
    else if (event.key === "Enter" && at >= 0) this.open(this.rows[at]);
    else return;
    event.preventDefault();
  }

  clicked(event) {
    if (event.target.closest("a, button") || getSelection().toString() !== "") return;
    const line = this.pool.find(l => l.element.contains(event.target));
    if (line) this.open(line.row);
  }
}

/* Decisions and other events of one MPA, told: in a list, newest first, and beside a plot. */
import { element, option } from "./dom.js";
import { state } from "./store.js";
import { change, milli, moment, whole } from "./text.js";

const KINDS = { decision: "Decision", policy: "Policy", fallback: "Fallback", trouble: "Trouble" };
const STEP = 50; /* shown at first, and more each time one asks */

const differs = (from, to) => from !== null && from !== undefined && to !== null && to !== undefined && from !== to;

/* "2 → 3 replicas, 200m → 250m CPU", or nothing. */
function changesOf(mark) {
  const parts = [];
  if (differs(mark.fromReplicas, mark.toReplicas)) parts.push(`${change(whole, mark.fromReplicas, mark.toReplicas)} replicas`);
  if (differs(mark.fromCpuMilli, mark.toCpuMilli)) parts.push(`${change(milli, mark.fromCpuMilli, mark.toCpuMilli)} CPU`);
  return parts.join(", ");
}

const kindOf = mark => KINDS[mark.kind] ? mark.kind : "decision";

export function markTip(mark) {
  const changes = changesOf(mark);
  return [
    element("b", { class: kindOf(mark) }, mark.title || KINDS[kindOf(mark)]), " ", element("span", { class: "soft" }, moment(mark.time, state.now)),
    changes ? element("div", {}, changes, mark.applied === false ? " (not done: mode Off)" : "") : null,
    element("div", {}, mark.text ?? ""),
  ].filter(Boolean);
}

export class MarkList {
  constructor(pointAt) {
    this.pointAt = pointAt; /* called with the mark that is to be seen in the plots */
    this.marks = [];
    this.most = STEP;
    this.kind = element("select", { "aria-label": "Kind of event", onchange: () => this.draw() }, option("", "All events"),
      ...Object.entries(KINDS).map(([kind, title]) => option(kind, title)));
    this.items = element("ol", { class: "marks" });
    this.more = element("button", { type: "button", onclick: () => this.showMore() });
    this.none = element("p", { class: "soft" }, "Nothing has been decided since the controller started.");
    this.element = element("section", { class: "panel", "aria-labelledby": "decisions" },
      element("div", { class: "panel-head" }, element("h2", { id: "decisions" }, "Decisions and events"), this.kind), this.none, this.items, this.more);
  }

  set(marks) {
    if (this.marks === marks) return;
    this.marks = marks;
    this.draw();
  }

  showMore() {
    this.most += STEP;
    this.draw();
  }

  draw() {
    const all = this.marks.filter(mark => !this.kind.value || kindOf(mark) === this.kind.value).reverse();
    this.items.replaceChildren(...all.slice(0, this.most).map(mark => this.item(mark)));
    this.none.hidden = all.length > 0;
    this.none.textContent = this.kind.value ? "There is no such event." : "Nothing has been decided since the controller started.";
    this.more.hidden = all.length <= this.most;
    this.more.textContent = `Show older ones (${whole(all.length - this.most)})`;
  }

  item(mark) {
    const changes = changesOf(mark), when = moment(mark.time, state.now);
    return element("li", { class: kindOf(mark) },
      element("button", { type: "button", class: "plain when", title: "Show in the plots", onclick: () => this.pointAt(mark) }, when),
      element("div", {},
        element("b", {}, mark.title || KINDS[kindOf(mark)]),
        changes ? element("span", { class: "changes" }, changes) : null,
        mark.applied === false ? element("span", { class: "tag" }, "not done") : null,
        mark.recommender ? element("span", { class: "soft by" }, `by ${mark.recommender}`) : null,
        element("p", {}, mark.text ?? "")));
  }
}

/* Which policies have decided on one MPA: when each took over, where it came from, what it earned and why it went. Newest first. */
import { element, setAttribute, setText, table } from "./dom.js";
import { state } from "./store.js";
import { OUTCOMES, earned, moment, originOf, whole } from "./text.js";

const TITLES = ["Version", "Now", "Earned", "Took over"];

export class VersionList {
  constructor() {
    const box = table("Table of policies", TITLES, []);
    this.body = box.querySelector("tbody");
    this.lines = [];
    this.element = element("section", { class: "panel versions", "aria-labelledby": "versions" }, element("h2", { id: "versions" }, "Policies"), box,
      element("p", { class: "soft hint" }, "Earned is the mean of the intervals that it decided; the higher, the better. The last eight are kept, as long as the controller runs."));
    this.element.hidden = true;
  }

  /* What stays is left alone: someone may be reading it. */
  set(versions) {
    this.element.hidden = versions.length === 0;
    while (this.lines.length > versions.length) this.lines.pop().element.remove();
    while (this.lines.length < versions.length) this.lines.push(this.line());
    versions.forEach((v, i) => this.fill(this.lines[i], v));
  }

  line() {
    const parts = { title: element("b", {}), sha256: element("code", {}), outcome: element("span", {}), why: element("small", {}),
      earned: element("b", {}), intervals: element("small", {}), from: element("span", {}), until: element("small", {}) };
    const { title, sha256, outcome, why, earned: mean, intervals, from, until } = parts;
    const row = element("tr", {}, ...[[title, sha256], [outcome, why], [mean, intervals], [from, until]].map(cell => element("td", {}, ...cell)));
    this.body.append(row);
    return { element: row, ...parts };
  }

  fill(line, v) {
    setText(line.title, `${whole(v.number)} ${originOf(v).toLowerCase()}`);
    setText(line.sha256, v.sha256.slice(0, 12));
    setAttribute(line.sha256, "title", v.sha256 || null);
    setText(line.outcome, OUTCOMES[v.outcome] ?? v.outcome ?? "–");
    setAttribute(line.outcome, "class", `tag outcome-${v.outcome}`);
    setText(line.why, v.why ?? "");
    setText(line.earned, earned(v.earned));
    setText(line.intervals, v.intervals ? `in ${whole(v.intervals)} interval${v.intervals === 1 ? "" : "s"}` : "");
    setText(line.from, moment(v.from, state.now));
    setText(line.until, v.until === null ? "" : `until ${moment(v.until, state.now)}`);
  }
}

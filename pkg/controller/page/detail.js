/* One autoscaler: how it is, how it came to be so, and why. */
import { get, mpaPath } from "./api.js";
import { healthBadge } from "./badges.js";
import { Charts } from "./charts.js";
import { element, oncePerFrame, setText } from "./dom.js";
import { Tiles, conditionsBox, containersBox, decisionBox, learningBox, tellsMessage, whatIfBox } from "./facts.js";
import { modeOf } from "./list.js";
import { MarkList, markTip } from "./marks.js";
import { keyOf, listen, state } from "./store.js";
import { amount, duration, earned, milli, moment, percent } from "./text.js";
import { Timeline } from "./timeline.js";
import { VersionList } from "./versions.js";

const NEWS_MS = 1000; /* asks again at most so often */
const SPANS = [["15 min", 15 * 6e4], ["1 h", 36e5], ["6 h", 6 * 36e5], ["All", null]];
const WANTED = [4, 3];

const PLOTS = [
  { id: "load", title: "Load", unit: "requests per second", write: amount, series: [{ key: "requestsPerSecond", colour: "c0", fill: true }] },
  { id: "latency", title: "Latency", unit: "against the goal, logarithmic", write: duration, log: true, series: [
    { key: "latencyMs", label: "measured", colour: "c0" }, { key: "late", colour: "trouble", dots: true, quiet: true },
    { key: "goalMs", label: "goal", colour: "text", dash: [7, 4], width: 1.25 }] },
  { id: "replicas", title: "Replicas", unit: "", write: amount, least: 2, whole: true, series: [
    { key: "wantedReplicas", label: "wanted", colour: "c1", step: true, dash: WANTED }, { key: "replicas", label: "are", colour: "c2", step: true, fill: true }] },
  { id: "cpu", title: "CPU", unit: "requested by a pod", write: milli, series: [
    { key: "wantedCpuMilli", label: "wanted", colour: "c1", step: true, dash: WANTED }, { key: "cpuMilli", label: "is", colour: "c6", step: true, fill: true }] },
  { id: "utilization", title: "Utilisation", unit: "of the CPU reserved", write: percent, least: 1, series: [{ key: "utilization", colour: "c4", fill: true }] },
];
const REWARD = { id: "reward", title: "Reward", unit: "what intervals earned; the higher, the better", write: earned, series: [{ key: "reward", colour: "c3" }] };

export class DetailView {
  constructor(namespace, name) {
    this.path = mpaPath(namespace, name);
    this.key = `${namespace}/${name}`;
    this.name = name;
    this.span = null;
    this.zoom = null;
    this.timeline = new Timeline();
    this.badge = healthBadge();
    this.tiles = new Tiles();
    this.marks = new MarkList(mark => this.showMark(mark));
    this.versions = new VersionList();
    this.side = element("div", { class: "side" });
    this.element = this.layout(namespace, name);
    this.draw = oncePerFrame(() => this.drawNow());
    this.unlisten = [listen("rows", news => this.changed(news)), listen("marks", news => this.heard(news))];
    this.ask();
  }

  title() { return this.name; }

  stop() {
    this.stopped = true;
    clearTimeout(this.timer);
    for (const unlisten of this.unlisten) unlisten();
    this.charts?.stop();
  }

  layout(namespace, name) {
    this.sub = element("span", { class: "soft" });
    this.trouble = element("p", { class: "notice", role: "status", hidden: true });
    this.why = element("div", {});
    this.spans = SPANS.map(([title, span]) => element("button", { type: "button", "aria-pressed": String(span === null), onclick: () => this.setSpan(span) }, title));
    this.moment = element("span", { class: "soft moment" });
    this.plots = element("section", { class: "panel", "aria-labelledby": "past" },
      element("div", { class: "panel-head" }, element("h2", { id: "past" }, "Over time"), this.moment, element("div", { class: "spans", role: "group", "aria-label": "Time shown" }, ...this.spans)));
    this.body = element("div", { class: "detail-body", hidden: true }, element("div", { class: "column" }, this.why, this.plots, this.versions.element, this.marks.element), this.side);
    return element("div", { class: "view detail" },
      element("nav", { class: "back", "aria-label": "Back" }, element("a", { href: "#/" }, "← All autoscalers")),
      element("div", { class: "heading" }, element("h1", {}, element("span", { class: "soft" }, `${namespace} / `), name), this.badge.element, this.sub),
      this.trouble, this.tiles.element, this.body);
  }

  /* --- asking --- */
  ask() {
    if (this.asking || this.timer) {
      this.again = true;
      return;
    }
    this.asking = true;
    this.fetch().catch(error => this.failed(error)).finally(() => {
      this.asking = false;
      if (this.stopped) return;
      this.timer = setTimeout(() => {
        this.timer = null;
        if (this.again) this.ask();
        this.again = false;
      }, NEWS_MS);
    });
  }

  async fetch() {
    const since = this.timeline.last;
    const [row, past] = await Promise.all([get(this.path), get(`${this.path}/timeline`, { query: since === null ? {} : { since } })]);
    this.row = row;
    this.now = state.now = past.now;
    this.timeline.add(past);
    this.trouble.hidden = true;
    if (!this.stopped) this.draw();
  }

  failed(error) {
    this.trouble.hidden = false;
    setText(this.trouble, error.status === 404 ? "There is no such autoscaler (any more)." : error.message);
  }

  heard(news) {
    if (keyOf(news) === this.key && this.timeline.addMarks(news.marks)) this.draw();
  }

  changed(news) {
    if (!news.all && !news.has(this.key)) return;
    if (state.rows.has(this.key)) this.ask();
    else this.failed({ status: 404 });
  }

  /* --- time shown --- */
  setSpan(span) {
    this.span = span;
    this.zoom = null;
    this.drawNow();
  }

  window() {
    const { time } = this.timeline.points, last = time.at(-1) ?? this.now, first = time[0] ?? last - 6e4;
    if (this.zoom) return this.zoom;
    const from = this.span === null ? first : Math.max(first, last - this.span);
    return [Math.min(from, last - 6e4), last];
  }

  zoomed(from, to) {
    this.zoom = from === null ? null : [from, to];
    this.drawNow();
  }

  showMark(mark) {
    const [from, to] = this.window();
    if (mark.time < from || mark.time > to) this.setSpan(null);
    this.plots.scrollIntoView({ block: "nearest" });
    requestAnimationFrame(() => this.charts.point(mark.time));
  }

  /* What is read off, or all that is shown. */
  tellMoment(index) {
    const [from, to] = this.window();
    setText(this.moment, index !== null ? moment(this.timeline.points.time[index], this.now) : `${moment(from, this.now)} to ${moment(to, this.now)}`);
  }

  /* --- drawing --- */
  drawCharts() {
    if (!this.charts) {
      const learns = this.timeline.points.reward.some(r => r !== null);
      this.charts = new Charts({ label: "Plots of load, latency, replicas, CPU and utilisation. Arrow keys read them off.", defs: learns ? [...PLOTS, REWARD] : PLOTS,
        tip: markTip, zoomed: (from, to) => this.zoomed(from, to), pointed: index => this.tellMoment(index) });
      this.plots.append(this.charts.element, element("p", { class: "soft hint" },
        "▼ is a decision, ▽ one that was not done. Point at it to read why. Drag to look closer, double click to go back."));
    }
    this.charts.set(this.timeline.plotted, this.timeline.marks, this.window());
    this.tellMoment(this.charts.at ?? null);
    this.spans.forEach((button, i) => button.setAttribute("aria-pressed", String(!this.zoom && this.span === SPANS[i][1])));
  }

  drawNow() {
    const { row } = this;
    if (!row) return;
    this.badge.set(row);
    setText(this.sub, [row.target, `mode ${modeOf(row)}`, row.recommender].filter(Boolean).join(" · "));
    this.body.hidden = false;
    this.tiles.set(row);
    this.why.replaceChildren(...[row.message && !tellsMessage(row) ? element("p", { class: `notice ${row.health}` }, row.message) : null, decisionBox(row)].filter(Boolean));
    this.drawCharts();
    this.versions.set(row.learning?.versions ?? []);
    this.marks.set(this.timeline.marks);
    this.drawFacts(row);
  }

  /* Made anew only when they differ, or what someone reads or marks there would be gone. */
  drawFacts(row) {
    const { whatIf, containers, conditions, mode, replicas, cpuMilli, wantedReplicas, wantedCpuMilli } = row;
    const learning = row.learning && { ...row.learning, versions: null };
    const text = JSON.stringify([whatIf, containers, conditions, learning, mode, mode === "Off" ? [replicas, cpuMilli, wantedReplicas, wantedCpuMilli] : 0, moment(state.now).slice(0, 10)]);
    if (text === this.factsText) return;
    this.factsText = text;
    this.side.replaceChildren(...[whatIfBox(row), learningBox(row), containersBox(row), conditionsBox(row)].filter(Boolean));
  }
}

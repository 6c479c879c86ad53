/* A saved report of `mpactl compare`, looked at here. It stays in the browser. */
import { Charts } from "./charts.js";
import { element, option, setText } from "./dom.js";
import { readReport } from "./reportfile.js";
import { amount, clock, duration, finePercent, fixed2, milli, whole } from "./text.js";

const DASHES = [undefined, [7, 3], [2, 3]];
const runColour = run => `c${run % 8}`;
const FIGURES = [
  { at: 0, title: "Trace" }, { at: 1, title: "Function" }, { at: 2, title: "Recommender" },
  { at: 3, title: "Requests", write: whole }, { at: 4, title: "Violations", write: finePercent }, { at: 5, title: "Latency", write: duration },
  { at: 6, title: "Goal", write: duration }, { at: 7, title: "Core-hours", write: x => amount(x === null ? null : x / 3600) }, { at: 8, title: "Used", write: finePercent },
  { at: 9, title: "Replicas", write: amount }, { at: 10, title: "Actions", write: whole }, { at: 11, title: "÷ oracle", write: fixed2 },
];

const secondsAxis = {
  splits(min, max, width) {
    const step = [1, 5, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400].find(s => (max - min) / s <= Math.max(2, width / 78)) ?? 172800;
    return Array.from({ length: Math.floor((max - min) / step) + 1 }, (_, i) => Math.ceil(min / step) * step + i * step).filter(s => s <= max);
  },
  write: splits => splits.map(s => clock(s, splits.length > 1 ? splits[1] - splits[0] : 1)),
};

/* A trace, which is long, may be continued after a comma. */
const breakable = text => text.split(/(?<=,)/).flatMap(part => [part, element("wbr")]);

let opened = null; /* kept while other views are looked at */

/* Rows of one trace or all, of functions or their sums, sorted. */
class ResultTable {
  constructor(report) {
    this.report = report;
    this.sort = { at: null, down: false };
    const traces = [...new Set(report.rows.map(r => r[0]))];
    this.trace = element("select", { id: "report-trace", onchange: () => this.draw() }, option("", "all"), ...traces.map(t => option(t, t)));
    this.each = element("input", { type: "checkbox", id: "report-each", onchange: () => this.draw() });
    this.table = element("table", { id: "report-table" });
    this.element = element("section", { class: "panel", "aria-labelledby": "results" }, element("h2", { id: "results" }, "Results"),
      element("div", { class: "controls" }, element("label", {}, "Trace ", this.trace), element("label", {}, this.each, " each function")),
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of results" }, this.table),
      element("p", { class: "soft" }, `A request that was late, lost or still waiting beyond its goal at the end is a violation; the goal allows ${finePercent(report.allowed)}. CPU is what was reserved, used or not.`));
    this.draw();
  }

  heading(figure) {
    const on = this.sort.at === figure.at;
    const turn = () => {
      this.sort = { at: figure.at, down: on && !this.sort.down };
      this.draw();
      this.table.querySelector("[aria-sort] button").focus();
    };
    return element("th", { scope: "col", class: figure.write ? "number" : null, "aria-sort": on ? (this.sort.down ? "descending" : "ascending") : null },
      element("button", { type: "button", onclick: turn }, figure.title));
  }

  compare(a, b) {
    const x = a[this.sort.at], y = b[this.sort.at];
    if (x === null || y === null) return (x === null) - (y === null);
    const way = x < y ? -1 : x > y ? 1 : 0;
    return this.sort.down ? -way : way;
  }

  cell(figure, row) {
    const value = row[figure.at], bad = figure.at === 4 && value > this.report.allowed + 1e-9;
    const text = figure.write ? figure.write(value) : figure.at === 1 && value === "*" ? "all" : value;
    return element("td", { class: `${figure.write ? "number" : ""}${bad ? " bad" : ""}` }, ...(figure.at === 0 ? breakable(text) : [text]));
  }

  draw() {
    const trace = this.trace.value, each = this.each.checked;
    const rows = this.report.rows.filter(r => (!trace || r[0] === trace) && (each || r[1] === "*"));
    if (this.sort.at !== null) rows.sort((a, b) => this.compare(a, b));
    const figures = FIGURES.filter(f => f.at > 1 || (f.at === 0 ? !trace : each));
    this.table.replaceChildren(element("thead", {}, element("tr", {}, ...figures.map(f => this.heading(f)))),
      element("tbody", {}, ...rows.map(r => element("tr", {}, ...figures.map(f => this.cell(f, r))))));
  }
}

/* Load, latency, replicas and CPU of one function, a line for each recommender. */
class ResultPlots {
  constructor(report) {
    this.report = report;
    this.hidden = new Set();
    this.trace = element("select", { id: "plot-trace", onchange: () => this.chooseTrace() }, ...[...new Set(report.plots.map(p => p.trace))].map(t => option(t, t)));
    this.function = element("select", { id: "plot-function", onchange: () => this.draw() });
    this.host = element("div", {});
    this.readout = element("div", { class: "readout" });
    this.element = element("section", { class: "panel", "aria-labelledby": "over-time" }, element("h2", { id: "over-time" }, "Over time"),
      report.note ? element("p", { class: "soft" }, report.note) : null,
      element("div", { class: "controls" }, element("label", {}, "Trace ", this.trace), element("label", {}, "Function ", this.function)),
      element("div", { class: "controls", role: "group", "aria-label": "Recommenders shown" }, ...report.recommenders.map((name, run) => this.legend(name, run))), this.host, this.readout);
    this.chooseTrace();
  }

  stop() { this.charts?.stop(); }

  legend(name, run) {
    const flip = event => {
      this.hidden[event.target.checked ? "delete" : "add"](run);
      this.draw();
    };
    const swatch = element("svg", { class: "key", viewBox: "0 0 18 4", width: 18, height: 4, "aria-hidden": "true" },
      element("line", { x1: 0, x2: 18, y1: 2, y2: 2, class: `stroke-${runColour(run)}`, "stroke-dasharray": DASHES[Math.floor(run / 8) % 3]?.join(" ") }));
    return element("label", {}, element("input", { type: "checkbox", checked: true, onchange: flip }), swatch, ` ${name}`);
  }

  chooseTrace() {
    const names = this.report.plots.filter(p => p.trace === this.trace.value).map(p => p.function);
    this.function.replaceChildren(...names.map(n => option(n, n)));
    this.draw();
  }

  lines(kind, more) {
    return this.report.recommenders.flatMap((label, run) => this.hidden.has(run) ? []
      : [{ key: `${kind}${run}`, label, colour: runColour(run), dash: DASHES[Math.floor(run / 8) % 3], width: 1.5, quiet: true, ...more }]);
  }

  defs() {
    return [
      { id: "load", title: "Load", unit: "requests per second", write: amount, series: [{ key: "load", colour: "c7", fill: true }] },
      { id: "latency", title: "Latency", unit: "against the goal, logarithmic; the worst interval of each point", write: duration, log: true,
        series: [...this.lines("latency"), { key: "goal", label: "goal", colour: "text", dash: [7, 4], width: 1.25 }] },
      { id: "replicas", title: "Replicas", unit: "starting ones too", write: amount, least: 2, whole: true, series: this.lines("replicas", { step: true }) },
      { id: "cpu", title: "CPU reserved", unit: "cores, all replicas", write: amount, series: this.lines("cpu", { step: true }) },
    ];
  }

  data(plot) {
    const data = { time: plot.load.map((_, i) => (i + 0.5) * plot.step_s), load: plot.load, goal: plot.load.map(() => plot.goal_ms ?? null) };
    plot.runs.forEach((run, i) => {
      data[`latency${i}`] = run.latency;
      data[`replicas${i}`] = run.replicas;
      data[`cpu${i}`] = run.replicas.map((n, k) => n === null || run.cpu[k] === null ? null : n * run.cpu[k] / 1000);
    });
    return data;
  }

  draw() {
    this.plot = this.report.plots.find(p => p.trace === this.trace.value && p.function === this.function.value);
    this.charts?.stop();
    this.charts = new Charts({ label: "Plots; arrow keys move the line that is read off", defs: this.defs(), axis: secondsAxis, tip: () => [],
      pointed: index => this.tell(index ?? this.plot.load.length - 1) });
    this.host.replaceChildren(this.charts.element);
    this.charts.set(this.data(this.plot), [], [0, this.plot.load.length * this.plot.step_s]);
    this.tell(this.plot.load.length - 1);
  }

  tell(at) {
    const { plot, report } = this, from = at * plot.step_s;
    const titles = ["Recommender", "Latency", "Replicas × CPU", "Used", "Decision that followed"];
    const rows = plot.runs.flatMap((run, i) => this.hidden.has(i) ? [] : [[report.recommenders[i], duration(run.latency[at]),
      `${amount(run.replicas[at])} × ${milli(run.cpu[at])}`, finePercent(run.used[at]), report.reasons[run.why[at]] || "–"]]);
    const when = `${clock(from, plot.step_s)} to ${clock(from + plot.step_s, plot.step_s)}: ${amount(plot.load[at])} requests per second, goal ${duration(plot.goal_ms)}`;
    const classOf = i => i === 4 ? "why" : i ? "number" : null;
    this.readout.replaceChildren(element("p", { class: "soft" }, when),
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Figures of one moment" }, element("table", {},
        element("thead", {}, element("tr", {}, ...titles.map((t, i) => element("th", { scope: "col", class: classOf(i) }, t)))),
        element("tbody", {}, ...rows.map(cells => element("tr", {}, ...cells.map((c, i) => element("td", { class: classOf(i) }, c))))))));
  }
}

export class ReportView {
  constructor() {
    this.picker = element("input", { type: "file", id: "report-file", accept: ".html,.json,text/html,application/json", onchange: () => this.open(this.picker.files[0]) });
    this.message = element("p", { class: "notice", role: "alert", hidden: true });
    this.about = element("p", { class: "soft" });
    this.body = element("div", {});
    this.drop = element("div", { class: "drop" }, element("label", { for: "report-file" }, "Open what ", element("code", {}, "mpactl compare --html"), " or ", element("code", {}, "--json"),
      " wrote, or drop it here. It is not sent anywhere."), this.picker);
    this.element = element("div", { class: "view report", ondragover: e => this.over(e, true), ondragleave: e => this.over(e, false), ondrop: e => this.dropped(e) },
      element("h1", {}, "Report"), this.drop, this.message, this.about, this.body);
    if (opened) this.show(opened);
  }

  title() { return "Report"; }

  stop() { this.plots?.stop(); }

  over(event, on) {
    event.preventDefault();
    this.drop.classList.toggle("over", on);
  }

  dropped(event) {
    this.over(event, false);
    this.open(event.dataTransfer.files[0]);
  }

  async open(file) {
    if (!file) return;
    try {
      opened = { name: file.name, report: await readReport(file) };
      this.message.hidden = true;
      this.show(opened);
    } catch (error) {
      this.message.hidden = false;
      setText(this.message, `${file.name}: ${error.message}`);
    }
  }

  show({ name, report }) {
    this.plots?.stop();
    this.plots = report.plots.length > 0 ? new ResultPlots(report) : null;
    setText(this.about, [name, report.about].filter(Boolean).join(": "));
    this.body.replaceChildren(new ResultTable(report).element,
      this.plots?.element ?? element("p", { class: "soft" }, "This file has no series to plot; what mpactl compare --html writes has them."));
  }
}

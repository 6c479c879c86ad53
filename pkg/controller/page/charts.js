/* Plots over one another, with one line that is read off in all of them. Marks are moments with a reason. */
import { element, setText } from "./dom.js";
import { listen } from "./store.js";
import { axisTime } from "./text.js";
import { colour, faint } from "./theme.js";

const HEIGHT = 128, LAST_HEIGHT = 152, AXIS_WIDTH = 58, NEAR_PX = 9;
const STEPS_MS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800].map(s => s * 1e3);
const WHOLE_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];
const FONT = "11px system-ui, sans-serif";
export const MARK_COLOURS = { decision: "accent", policy: "c2", fallback: "fallback", trouble: "trouble" };
let groups = 0;

/* Round values from zero; a plot without values still has a frame. */
function upTo(most) {
  const rough = (most || 1) * 1.08 / 4, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 2.5, 5, 10].find(f => f * power >= rough);
  return step * Math.ceil((most || 1) * 1.02 / step);
}

function yRange(chart) {
  return (plot, low, high) => {
    const top = high > 0 && high > (chart.least ?? 0) ? upTo(high) : chart.least ?? 1;
    return low < 0 ? [-upTo(-low), high > 0 ? top : 0] : [0, top];
  };
}

/* From one value to another that may be many times as large. */
function logRange(plot, low, high) {
  return low > 0 ? [low / 1.25, Math.max(high, 2 * low) * 1.25] : [1, 1000];
}

function logSplits(min, max) {
  const decades = Math.log10(max / min), factors = decades > 3 ? [1] : decades > 1.5 ? [1, 3] : decades > 0.8 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 6, 8], all = [];
  for (let power = 10 ** Math.floor(Math.log10(min)); power <= max; power *= 10)
    all.push(...factors.map(f => f * power).filter(v => v >= min && v <= max));
  return all;
}

/* Where to name times: whole steps of the local clock. */
function timeSplits(min, max, width) {
  const step = STEPS_MS.find(s => (max - min) / s <= Math.max(2, width / 78)) ?? STEPS_MS[STEPS_MS.length - 1];
  const shift = new Date(min).getTimezoneOffset() * 6e4;
  const all = [];
  for (let t = Math.ceil((min - shift) / step) * step + shift; t <= max; t += step) all.push(t);
  return all;
}

export const timeAxis = {
  splits: timeSplits,
  write: splits => splits.map(t => axisTime(t, splits.length > 1 ? splits[1] - splits[0] : 1e3)),
};

export class Charts {
  /* defs: { id, title, unit, write, log: a scale of powers, least: what the scale goes up to at least, whole: it counts things, series: [{ key, label, colour, dash, step, fill, dots, quiet: not told }] }
   * pointed(index or null) is called when another point is read off, zoomed(from, to) after one was chosen. */
  constructor({ label, defs, axis = timeAxis, pointed, zoomed, tip }) {
    Object.assign(this, { defs, axis, pointed, zoomed, tipText: tip });
    this.sync = `charts${++groups}`;
    this.data = { time: [] };
    this.marks = [];
    this.window = [0, 1];
    this.plots = [];
    this.tip = element("div", { class: "tip", role: "status", hidden: true });
    this.body = element("div", { class: "charts", tabindex: "0", role: "group", "aria-label": label, onkeydown: e => this.pressed(e), onblur: () => this.leave() });
    this.element = element("div", { class: "charts-frame" }, this.body, this.tip);
    this.figures = defs.map(def => this.makeFigure(def));
    this.body.append(...this.figures.map(f => f.element));
    this.sizes = new ResizeObserver(() => this.resized());
    this.sizes.observe(this.body);
    this.unlisten = listen("theme", () => this.redraw());
  }

  stop() {
    this.sizes.disconnect();
    this.unlisten();
    for (const plot of this.plots) plot.destroy();
    this.plots = [];
  }

  /* --- the frame of a plot: title, keys with their values, the plot --- */
  makeFigure(def) {
    const keys = def.series.filter(s => !s.quiet).map(s => {
      const value = element("b", {}, "–");
      const swatch = element("svg", { class: "key", viewBox: "0 0 18 4", width: 18, height: 4, "aria-hidden": "true" },
        element("line", { x1: 0, x2: 18, y1: 2, y2: 2, "stroke-dasharray": s.dash ? s.dash.join(" ") : null, class: `stroke-${s.colour}` }));
      return { series: s, value, element: element("li", {}, swatch, s.label ? `${s.label} ` : "", value) };
    });
    const host = element("div", { class: "plot" });
    const title = element("figcaption", {}, element("h3", {}, def.title, " ", element("small", {}, def.unit)), element("ul", { class: "keys" }, ...keys.map(k => k.element)));
    return { def, keys, host, element: element("figure", { class: "chart" }, title, host) };
  }

  make(figure, width) {
    const last = figure === this.figures[this.figures.length - 1];
    const plot = new uPlot({
      width, height: last ? LAST_HEIGHT : HEIGHT, ms: 1, padding: [10, 20, 0, 0], legend: { show: false },
      scales: { x: { time: false, auto: false, range: () => this.window }, y: figure.def.log ? { distr: 3, range: logRange } : { range: yRange(figure.def) } },
      cursor: { y: false, sync: { key: this.sync, setSeries: false }, drag: { x: true, y: false, setScale: false }, points: { size: 7 },
        bind: { dblclick: () => () => this.zoomed?.(null) } },
      series: [{}, ...figure.def.series.map(s => this.series(s, figure.def))],
      axes: [this.xAxis(last), this.yAxis(figure.def)],
      hooks: { drawClear: [p => this.drawMarks(p)], setCursor: [p => this.cursor(p)], setSelect: [p => this.selected(p)] },
    }, this.columns(figure.def), figure.host);
    plot.over.addEventListener("pointerenter", () => { this.over = plot; });
    plot.over.addEventListener("pointerleave", () => { this.over = null; });
    return plot;
  }

  series(s, def) {
    return {
      label: s.label || def.title, width: s.width ?? 1.75, dash: s.dash, stroke: () => colour(s.colour), show: true,
      fill: s.fill ? () => faint(s.colour, 0.12) : undefined,
      paths: s.dots ? () => null : s.step ? uPlot.paths.stepped({ align: 1 }) : undefined,
      points: { show: Boolean(s.dots), size: 5, fill: () => colour(s.colour), stroke: () => colour(s.colour) },
    };
  }

  xAxis(last) {
    return { show: true, size: last ? 26 : 6, gap: 4, font: FONT, stroke: () => colour("soft"), ticks: { show: false }, grid: { stroke: () => faint("line", 0.7), width: 1 },
      splits: (plot, axis, min, max) => this.axis.splits(min, max, plot.bbox.width / devicePixelRatio),
      values: (plot, splits) => last ? this.axis.write(splits) : splits.map(() => "") };
  }

  yAxis(def) {
    return { size: AXIS_WIDTH, gap: 6, font: FONT, space: 28, stroke: () => colour("soft"), ticks: { show: false }, grid: { stroke: () => faint("line", 0.7), width: 1 },
      values: (plot, splits) => splits.map(v => def.write(v)), ...(def.whole ? { incrs: WHOLE_STEPS } : {}), ...(def.log ? { splits: (plot, axis, min, max) => logSplits(min, max), filter: (plot, splits) => splits } : {}) };
  }

  columns(def) {
    const drawn = values => def.log ? values.map(v => v > 0 ? v : null) : values;
    return [this.data.time, ...def.series.map(s => drawn(this.data[s.key] ?? this.data.time.map(() => null)))];
  }

  /* --- what is shown --- */
  resized() {
    const width = Math.floor(this.body.clientWidth);
    if (width < 50) return;
    if (this.plots.length === 0) this.plots = this.figures.map(f => this.make(f, width));
    else if (this.plots[0].width !== width) this.plots.forEach((p, i) => p.setSize({ width, height: i === this.plots.length - 1 ? LAST_HEIGHT : HEIGHT }));
    else return;
    this.update();
  }

  set(data, marks, window) {
    Object.assign(this, { data, marks, window });
    this.update();
  }

  update() {
    this.plots.forEach((plot, i) => plot.batch(() => {
      plot.setData(this.columns(this.defs[i]), false);
      plot.setScale("x", { min: this.window[0], max: this.window[1] });
    }));
    this.tellValues(this.at ?? null);
  }

  redraw() {
    for (const plot of this.plots) plot.redraw(false, true);
  }

  /* Those of the point that is read off, or the last ones. */
  tellValues(index) {
    const at = index ?? this.data.time.length - 1;
    for (const { def, keys } of this.figures)
      for (const { series, value } of keys) setText(value, def.write(this.data[series.key]?.[at] ?? null));
  }

  /* --- marks --- */
  drawMarks(plot) {
    const { ctx, bbox } = plot, scale = devicePixelRatio;
    ctx.save();
    for (const mark of this.marks) {
      if (mark.time < this.window[0] || mark.time > this.window[1]) continue;
      const x = Math.round(plot.valToPos(mark.time, "x", true)), name = MARK_COLOURS[mark.kind] ?? "soft";
      ctx.fillStyle = ctx.strokeStyle = faint(name, mark === this.meant ? 1 : 0.35);
      ctx.fillRect(x, bbox.top, mark === this.meant ? 2 * scale : scale, bbox.height);
      ctx.beginPath();
      ctx.moveTo(x - 4 * scale, bbox.top - 8 * scale);
      ctx.lineTo(x + 4 * scale, bbox.top - 8 * scale);
      ctx.lineTo(x, bbox.top - scale);
      ctx.closePath();
      ctx.fillStyle = ctx.strokeStyle = colour(name);
      ctx.lineWidth = scale;
      ctx.setLineDash([]);
      if (mark.applied === false) ctx.stroke();
      else ctx.fill();
    }
    ctx.restore();
  }

  nearestMark(plot, left) {
    let best = null, distance = NEAR_PX;
    for (const mark of this.marks) {
      const far = Math.abs(plot.valToPos(mark.time, "x") - left);
      if (far <= distance) [best, distance] = [mark, far];
    }
    return best;
  }

  showTip(plot, left) {
    const mark = this.nearestMark(plot, left);
    this.mean(mark);
    this.tip.hidden = !mark;
    if (!mark) return;
    this.tip.replaceChildren(...this.tipText(mark));
    const frame = this.element.getBoundingClientRect(), over = plot.over.getBoundingClientRect();
    const x = over.left - frame.left + plot.valToPos(mark.time, "x"), room = frame.width - this.tip.offsetWidth - 4;
    this.tip.style.left = `${Math.max(0, Math.min(x + 12 > room ? x - this.tip.offsetWidth - 12 : x + 12, room))}px`;
    this.tip.style.top = `${over.top - frame.top + 4}px`;
  }

  /* The mark that is told of is drawn stronger. */
  mean(mark) {
    if (this.meant === mark) return;
    this.meant = mark;
    this.redraw();
  }

  /* --- pointing --- */
  cursor(plot) {
    const idx = plot.cursor.left < 0 ? null : plot.cursor.idx ?? null;
    if (plot === this.over) this.showTip(plot, plot.cursor.left);
    else if (!this.over && !this.byKey) this.leaveTip();
    if (idx === this.at) return;
    this.at = idx;
    this.tellValues(idx);
    this.pointed?.(idx);
  }

  leaveTip() {
    this.tip.hidden = true;
    this.mean(null);
  }

  leave() {
    this.byKey = false;
    for (const plot of this.plots) plot.setCursor({ left: -10, top: -10 });
    this.leaveTip();
  }

  /* Reads off the time in all plots; its mark is told. */
  point(time) {
    if (this.plots.length === 0) return;
    this.byKey = true;
    for (const plot of this.plots) plot.setCursor({ left: plot.valToPos(time, "x"), top: 20 });
    this.showTip(this.plots[0], this.plots[0].valToPos(time, "x"));
  }

  pressed(event) {
    const time = this.data.time, last = time.length - 1, at = this.at ?? last, far = event.shiftKey ? 10 : 1;
    const to = { ArrowLeft: at - far, ArrowRight: at + far, Home: 0, End: last }[event.key];
    if (event.key === "Escape") this.zoomed?.(null);
    if (to === undefined || last < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const inside = i => Math.min(Math.max(i, time.findIndex(t => t >= this.window[0])), time.findLastIndex(t => t <= this.window[1]));
    this.point(time[inside(to)]);
  }

  selected(plot) {
    if (plot.select.width < 8 || !this.zoomed) return;
    const from = plot.posToVal(plot.select.left, "x"), to = plot.posToVal(plot.select.left + plot.select.width, "x");
    for (const p of this.plots) p.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.zoomed(from, to);
  }
}

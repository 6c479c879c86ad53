/* All autoscalers: found by words, filtered, sorted. What is chosen stands in the address, so that it can be kept. */
import { healthBadge } from "./badges.js";
import { $, element, meter, oncePerFrame, option, setAttribute, setText } from "./dom.js";
import { Grid } from "./grid.js";
import { keyOf, listen, state } from "./store.js";
import { HEALTH, amount, change, duration, healthOf, milli, percent } from "./text.js";

const mpaHash = row => `#/mpa/${encodeURIComponent(row.namespace)}/${encodeURIComponent(row.name)}`;
const plainText = text => cell => row => setText(cell, text(row));
const reasonOf = row => healthOf(row) === "ok" ? row.target ?? "" : row.message || row.target || "";

function nameCell(cell) {
  const namespace = element("span", { class: "soft" }), name = element("b", {}), about = element("small", {});
  const link = element("a", { tabindex: "-1" }, namespace, name);
  cell.append(link, about);
  return row => {
    link.setAttribute("href", mpaHash(row));
    setText(namespace, `${row.namespace} / `);
    setText(name, row.name);
    setText(about, reasonOf(row));
    setAttribute(about, "title", reasonOf(row));
    setAttribute(about, "class", `about ${healthOf(row)}`);
  };
}

function healthCell(cell) {
  const badge = healthBadge();
  cell.append(badge.element);
  return row => badge.set(row);
}

function measuredCell(text, share, bad) {
  return cell => {
    const value = element("span", {}), bar = meter();
    cell.append(value, bar.element);
    return row => {
      setText(value, text(row));
      bar.set(share(row), bad(row));
      cell.classList.toggle("bad", bad(row));
    };
  };
}

function recommenderCell(cell) {
  const name = element("span", {}), other = element("small", {});
  cell.append(name, other);
  return row => {
    const differs = row.decidedBy && row.decidedBy !== row.recommender;
    setText(name, row.recommender ?? "–");
    setText(other, differs ? `${row.decidedBy} decides` : "");
  };
}

const late = row => row.latencyMs !== null && row.goalMs !== null && row.latencyMs > row.goalMs;
export const modeOf = row => row.paused ? `${row.mode}, paused` : row.mode ?? "–";

function modeCell(cell) {
  const mode = element("span", {}), paused = element("small", {});
  cell.append(mode, paused);
  return row => {
    setText(mode, row.mode ?? "–");
    setText(paused, row.paused ? "paused" : "");
  };
}

const COLUMNS = [
  { id: "name", title: "Autoscaler", value: keyOf, make: nameCell },
  { id: "health", title: "Health", value: row => HEALTH[healthOf(row)].rank, make: healthCell },
  { id: "latency", title: "Latency", number: true, down: true, value: row => row.latencyMs,
    make: measuredCell(row => duration(row.latencyMs), row => row.goalMs && row.latencyMs !== null ? row.latencyMs / row.goalMs : null, late) },
  { id: "goal", title: "Goal", number: true, value: row => row.goalMs,
    make: plainText(row => row.goalMs === null ? "–" : `p${row.percentile} ${duration(row.goalMs)}`) },
  { id: "load", title: "Requests/s", number: true, down: true, value: row => row.requestsPerSecond, make: plainText(row => amount(row.requestsPerSecond)) },
  { id: "replicas", title: "Replicas", number: true, down: true, value: row => row.replicas,
    make: plainText(row => change(amount, row.replicas, row.wantedReplicas)) },
  { id: "cpu", title: "CPU", number: true, down: true, value: row => row.cpuMilli, make: plainText(row => change(milli, row.cpuMilli, row.wantedCpuMilli)) },
  { id: "utilization", title: "Utilisation", number: true, down: true, value: row => row.utilization,
    make: measuredCell(row => percent(row.utilization), row => row.utilization, () => false) },
  { id: "recommender", title: "Recommender", value: row => row.recommender, make: recommenderCell },
  { id: "mode", title: "Mode", value: modeOf, make: modeCell },
];

/* --- what is looked for --- */
const texts = new WeakMap(); /* of rows, made when first searched */
function textOf(row) {
  let text = texts.get(row);
  if (text === undefined) {
    text = [keyOf(row), row.target, row.recommender, row.decidedBy, row.mode, row.health, row.message].join("\n").toLowerCase();
    texts.set(row, text);
  }
  return text;
}

function wanted(filter) {
  const words = filter.q.toLowerCase().split(/\s+/).filter(Boolean);
  return row => (!filter.namespace || row.namespace === filter.namespace) && (!filter.mode || row.mode === filter.mode)
    && words.every(word => textOf(row).includes(word));
}

const DEFAULTS = { q: "", namespace: "", mode: "", health: "", sort: "name", down: "" };

export class ListView {
  constructor(query) {
    this.filter = { ...DEFAULTS };
    for (const key of Object.keys(DEFAULTS)) this.filter[key] = query.get(key) ?? DEFAULTS[key];
    if (!COLUMNS.some(c => c.id === this.filter.sort)) this.filter.sort = DEFAULTS.sort;
    this.grid = new Grid({ label: "Autoscalers", className: "mpas", columns: COLUMNS, key: keyOf, open: row => { location.hash = mpaHash(row); },
      sort: { id: this.filter.sort, down: this.filter.down === "1" },
      sorted: ({ id, down }) => this.set({ sort: id, down: down ? "1" : "" }) });
    this.element = element("div", { class: "view list" }, element("h1", { class: "hidden" }, "Autoscalers"),
      this.makeChips(), this.makeControls(), this.grid.element, this.makeEmpty());
    this.draw = oncePerFrame(() => this.drawNow());
    this.unlisten = [listen("rows", this.draw), listen("link", () => state.loaded || this.draw())];
  }

  title() { return "Autoscalers"; }

  shown() { this.drawNow(); }

  stop() {
    for (const unlisten of this.unlisten) unlisten();
    this.grid.stop();
  }

  /* --- controls --- */
  makeChips() {
    this.chips = {};
    const all = ["", ...Object.keys(HEALTH)].map(health => {
      const count = element("b", {}, "–"), title = health ? HEALTH[health].title : "All";
      const chip = element("button", { type: "button", class: `chip ${health}`, onclick: () => this.set({ health: this.filter.health === health ? "" : health }) },
        count, element("span", {}, health ? element("i", { "aria-hidden": "true" }, HEALTH[health].sign) : null, title));
      this.chips[health] = { chip, count };
      return chip;
    });
    this.cores = element("b", {}, "–");
    return element("div", { class: "chips", role: "group", "aria-label": "Filter by health" }, ...all,
      element("div", { class: "chip fact" }, this.cores, element("span", {}, "cores reserved")));
  }

  makeControls() {
    this.search = element("input", { type: "search", id: "search", placeholder: "Search  ( / )", "aria-label": "Search autoscalers", autocomplete: "off", spellcheck: "false",
      oninput: () => this.set({ q: this.search.value }), onkeydown: e => this.searchPressed(e) });
    this.search.value = this.filter.q;
    this.namespace = element("select", { id: "namespace", "aria-label": "Namespace", onchange: () => this.set({ namespace: this.namespace.value }) });
    this.mode = element("select", { id: "mode", "aria-label": "Mode", onchange: () => this.set({ mode: this.mode.value }) },
      option("", "All modes"), ...["Auto", "Initial", "Off"].map(m => option(m, m)));
    this.mode.value = this.filter.mode;
    this.count = element("span", { class: "soft count", role: "status" });
    return element("div", { class: "controls" }, this.search, this.namespace, this.mode, this.grid.sorter, this.count);
  }

  makeEmpty() {
    this.clear = element("button", { type: "button", onclick: () => this.reset() }, "Show all");
    this.emptyText = element("p", {});
    this.empty = element("div", { class: "empty" }, this.emptyText, this.clear);
    return this.empty;
  }

  searchPressed(event) {
    if (event.key === "Escape") this.reset();
    else if (event.key === "ArrowDown" || event.key === "Enter") {
      this.grid.element.focus();
      this.grid.activate(0);
    } else return;
    event.preventDefault();
  }

  reset() {
    this.search.value = this.mode.value = "";
    this.set({ q: "", namespace: "", mode: "", health: "" });
  }

  set(change) {
    Object.assign(this.filter, change);
    const kept = Object.entries(this.filter).filter(([key, value]) => value !== DEFAULTS[key]);
    history.replaceState(null, "", kept.length > 0 ? `#/?${new URLSearchParams(kept)}` : "#/");
    this.grid.element.scrollTop = 0;
    this.drawNow();
  }

  /* --- drawing --- */
  drawNamespaces() {
    const names = [...new Set([...state.rows.values()].map(row => row.namespace))].sort();
    if (this.filter.namespace && !names.includes(this.filter.namespace)) names.push(this.filter.namespace);
    if (names.join() === this.names) return;
    this.names = names.join();
    this.namespace.replaceChildren(option("", "All namespaces"), ...names.map(n => option(n, n)));
  }

  drawChips(rows) {
    const counts = Object.fromEntries(Object.keys(this.chips).map(h => [h, 0]));
    let milliCores = 0;
    for (const row of rows) {
      counts[healthOf(row)]++;
      milliCores += (row.replicas ?? 0) * (row.cpuMilli ?? 0);
    }
    counts[""] = rows.length;
    for (const [health, { chip, count }] of Object.entries(this.chips)) {
      setText(count, amount(counts[health]));
      setAttribute(chip, "aria-pressed", String(this.filter.health === health));
      chip.classList.toggle("none", counts[health] === 0);
    }
    setText(this.cores, amount(milliCores / 1000));
  }

  drawNow() {
    this.drawNamespaces();
    this.namespace.value = this.filter.namespace;
    const found = [...state.rows.values()].filter(wanted(this.filter));
    this.drawChips(found);
    const rows = this.filter.health ? found.filter(row => healthOf(row) === this.filter.health) : found;
    this.grid.setRows(rows);
    const total = state.rows.size;
    setText(this.count, rows.length === total ? `${amount(total)} autoscalers` : `${amount(rows.length)} of ${amount(total)}`);
    this.empty.hidden = rows.length > 0;
    this.grid.element.hidden = rows.length === 0;
    this.clear.hidden = total === 0;
    setText(this.emptyText, !state.loaded ? state.link.why || "Waiting for the controller." : total > 0 ? "No autoscaler is like that."
      : "There is no MultidimPodAutoscaler yet. Apply one, and it shows up here.");
    this.measureShown();
  }

  /* For whoever wants to know how long it took. */
  measureShown() {
    if (this.measured || !state.loaded) return;
    this.measured = true;
    requestAnimationFrame(() => setTimeout(() => performance.mark("mpas-shown")));
  }

  onKey(event) {
    if (event.key !== "/") return false;
    $("search").focus();
    $("search").select();
    return true;
  }
}

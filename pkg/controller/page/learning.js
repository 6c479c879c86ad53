/* What is learned, for whom, how far it is, and where thresholds decide instead. */
import { get } from "./api.js";
import { sparkline } from "./badges.js";
import { element, option, setAttribute, setText } from "./dom.js";
import { Grid } from "./grid.js";
import { keyOf, state } from "./store.js";
import { LEARNING, amount, earned, moment, originOf, percent, whole } from "./text.js";

const EVERY_MS = 5000;
const lastOf = item => item.reward?.findLast(v => v !== null) ?? null;
const itemHash = item => `#/mpa/${encodeURIComponent(item.namespace)}/${encodeURIComponent(item.name)}`;

function learnerCell(cell) {
  const namespace = element("span", { class: "soft" }), name = element("b", {}), message = element("small", { class: "about" });
  const link = element("a", { tabindex: "-1" }, namespace, name);
  cell.append(link, message);
  return item => {
    link.setAttribute("href", itemHash(item));
    setText(namespace, `${item.namespace} / `);
    setText(name, item.name);
    setText(message, item.message ?? "");
    setAttribute(message, "title", item.message ?? "");
  };
}

function stateCell(cell) {
  const tag = element("span", { class: "tag" }), bar = element("progress", { max: 1 }), share = element("small", {});
  cell.append(tag, element("span", { class: "progress" }, bar, share));
  return item => {
    const busy = item.progress !== null && item.progress !== undefined && item.progress < 1;
    setText(tag, LEARNING[item.state] ?? item.state ?? "–");
    setAttribute(tag, "class", `tag learning-${item.state}`);
    bar.parentNode.hidden = !busy;
    bar.value = item.progress ?? 0;
    setAttribute(bar, "aria-label", `Progress of ${keyOf(item)}`);
    setText(share, busy ? percent(item.progress) : "");
    setAttribute(cell, "title", item.since ? `Thresholds decide since ${moment(item.since, state.now)}` : null);
  };
}

function rewardCell(cell) {
  const line = sparkline(150, 30), value = element("b", {});
  cell.append(line.element, value);
  return item => {
    line.set(item.reward ?? []);
    setText(value, earned(lastOf(item)));
  };
}

const versionText = item => item.version ? `v${whole(item.version)} ${item.policy ? originOf(item).toLowerCase() : "waits"}` : "";
const backText = item => item.rolledBack ? `${whole(item.rolledBack)} rolled back` : "";

function policyCell(cell) {
  const name = element("span", {}), back = element("small", { class: "soft" }), hash = element("code", {}), version = element("small", { class: "soft" });
  cell.append(element("span", {}, name, " ", back), element("span", {}, hash, " ", version));
  return item => {
    setText(name, item.policy ?? "–");
    setText(hash, item.sha256 ? item.sha256.slice(0, 12) : "");
    setAttribute(hash, "title", item.sha256 || null);
    setText(version, versionText(item));
    setText(back, backText(item));
  };
}

function fallbackCell(cell) {
  const tag = element("span", { class: "badge fallback" }, element("i", { "aria-hidden": "true" }, "↺"), "Fallback"), why = element("small", { class: "about" });
  cell.append(tag, why);
  return item => {
    tag.hidden = !item.fallback;
    setText(why, item.fallback ? item.fallbackReason ?? "" : "");
    setAttribute(why, "title", item.fallback ? item.fallbackReason ?? "" : null);
  };
}

const LEARNING_COLUMNS = [
  { id: "name", title: "Autoscaler", value: keyOf, make: learnerCell },
  { id: "state", title: "State", value: item => item.state, make: stateCell },
  { id: "reward", title: "Reward", down: true, value: lastOf, make: rewardCell },
  { id: "policy", title: "Policy", value: item => item.policy, make: policyCell },
  { id: "falls", title: "Fallback", down: true, value: item => Number(Boolean(item.fallback)), make: fallbackCell },
];

export class LearningView {
  constructor() {
    this.items = [];
    this.grid = new Grid({ label: "Learning of autoscalers", className: "learning", columns: LEARNING_COLUMNS, key: keyOf,
      open: item => { location.hash = itemHash(item); }, sort: { id: "name", down: false } });
    this.search = element("input", { type: "search", id: "search", placeholder: "Search  ( / )", "aria-label": "Search", autocomplete: "off", oninput: () => this.draw() });
    this.only = element("select", { "aria-label": "State", onchange: () => this.draw() }, option("", "All states"),
      ...Object.entries(LEARNING).map(([id, title]) => option(id, title)), option("fallback", "In fallback"));
    this.count = element("span", { class: "soft count", role: "status" });
    this.note = element("div", { class: "empty" });
    this.element = element("div", { class: "view list" }, element("h1", {}, "Learning"),
      element("p", { class: "soft lead" }, "For each autoscaler that asks for ppo, the controller looks for a policy of its own. Until one is found, or when it no longer fits, thresholds or the general policy decide. Reward is what its last decisions earned: the higher, the better. Open one for the policies that it had, and what became of them."),
      element("div", { class: "controls" }, this.search, this.only, this.grid.sorter, this.count), this.grid.element, this.note);
    this.ask();
  }

  title() { return "Learning"; }

  stop() {
    this.stopped = true;
    clearTimeout(this.timer);
    this.grid.stop();
  }

  async ask() {
    try {
      this.items = (await get("learning")).items;
      this.failure = null;
    } catch (error) {
      this.failure = error.message;
    }
    if (this.stopped) return;
    this.draw();
    this.timer = setTimeout(() => this.ask(), EVERY_MS);
  }

  draw() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean), only = this.only.value;
    const rows = this.items.filter(item => (!only || (only === "fallback" ? item.fallback : item.state === only))
      && words.every(w => [keyOf(item), item.state, item.policy, versionText(item), backText(item), item.message, item.fallbackReason].join("\n").toLowerCase().includes(w)));
    this.grid.setRows(rows);
    const falling = this.items.filter(item => item.fallback).length;
    setText(this.count, `${amount(rows.length)} of ${amount(this.items.length)}, ${amount(falling)} in fallback`);
    this.grid.element.hidden = rows.length === 0;
    this.note.hidden = rows.length > 0;
    setText(this.note, this.failure ?? (this.items.length === 0 ? "No autoscaler learns: none asks for the recommender ppo." : "No autoscaler is like that."));
  }

  onKey(event) {
    if (event.key !== "/") return false;
    this.search.focus();
    return true;
  }
}

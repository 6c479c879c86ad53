/* What is known of one MPA besides its past: tiles, what Auto would have done, containers, conditions, learning. */
import { element, meter, section, setText, table } from "./dom.js";
import { state } from "./store.js";
import { LEARNING, amount, change, duration, milli, moment, originOf, percent, whole } from "./text.js";

/* --- tiles --- */
const TILES = [
  { title: "Latency", value: row => duration(row.latencyMs), more: row => row.goalMs === null ? "no latency goal" : `goal p${row.percentile} ${duration(row.goalMs)}`,
    share: row => row.goalMs && row.latencyMs !== null ? row.latencyMs / row.goalMs : null, bad: row => row.goalMs !== null && row.latencyMs > row.goalMs },
  { title: "Load", value: row => amount(row.requestsPerSecond), more: () => "requests per second" },
  { title: "Replicas", value: row => change(whole, row.replicas, row.wantedReplicas), more: row => `${whole(row.minReplicas)} to ${whole(row.maxReplicas)} allowed` },
  { title: "CPU of a pod", value: row => change(milli, row.cpuMilli, row.wantedCpuMilli), more: row => `${amount((row.replicas ?? 0) * (row.cpuMilli ?? 0) / 1000)} cores in all` },
  { title: "Utilisation", value: row => percent(row.utilization), more: () => "of the CPU reserved", share: row => row.utilization },
  { title: "Decided by", value: row => row.decidedBy || row.recommender || "–", more: row => row.decidedBy && row.decidedBy !== row.recommender ? `in place of ${row.recommender}` : "as asked for" },
];

export class Tiles {
  constructor() {
    this.tiles = TILES.map(tile => {
      const value = element("dd", { class: "value" }, "–"), more = element("dd", { class: "soft" }), bar = tile.share ? meter() : null;
      return { tile, value, more, bar, element: element("div", { class: "tile" }, element("dt", {}, tile.title), value, bar ? element("dd", {}, bar.element) : null, more) };
    });
    this.element = element("dl", { class: "tiles" }, ...this.tiles.map(t => t.element));
  }

  set(row) {
    for (const { tile, value, more, bar, element: box } of this.tiles) {
      setText(value, tile.value(row));
      setText(more, tile.more(row));
      bar?.set(tile.share(row), tile.bad?.(row));
      box.classList.toggle("bad", Boolean(tile.bad?.(row)));
    }
  }
}

/* --- what Auto would have done --- */
function versus(title, write, now, auto, most) {
  const line = (name, value) => {
    const bar = meter(name === "Auto" ? "auto" : "");
    bar.set(most > 0 && value !== null ? value / most : null);
    return element("div", { class: "versus" }, element("span", {}, name), bar.element, element("b", {}, write(value)));
  };
  return element("div", {}, element("h3", {}, title), line("As it was", now), line("Auto", auto));
}

function savedText(what) {
  const saved = what.coreHours > 0 && what.coreHoursAuto !== null ? 1 - what.coreHoursAuto / what.coreHours : null;
  const spared = what.lateRequests !== null && what.lateRequestsAuto !== null ? what.lateRequests - what.lateRequestsAuto : null;
  const cpu = saved === null ? null : saved >= 0 ? `reserved ${percent(saved)} less CPU` : `reserved ${percent(-saved)} more CPU`;
  const late = spared === null ? null : spared >= 0 ? `spared you ${whole(spared)} late requests` : `made ${whole(-spared)} more requests late`;
  return [cpu, late].filter(Boolean).join(" and ");
}

function offText(row) {
  const same = row.replicas === row.wantedReplicas && row.cpuMilli === row.wantedCpuMilli;
  if (row.wantedReplicas === null && row.wantedCpuMilli === null) return "Nothing is recommended yet.";
  return same ? "Auto would leave the target as it is now."
    : `Auto would set ${whole(row.wantedReplicas)} × ${milli(row.wantedCpuMilli)}; there are ${whole(row.replicas)} × ${milli(row.cpuMilli)}.`;
}

export function whatIfBox(row) {
  const what = row.whatIf;
  if (row.mode !== "Off" && !what) return null;
  const saved = what ? savedText(what) : "";
  return section("what-if", "What Auto would have done",
    row.mode === "Off" ? element("p", {}, offText(row)) : null,
    what && element("p", { class: "soft" }, `Since ${moment(what.since, state.now)}, ${whole(what.requests)} requests.${saved ? ` Auto would have ${saved}.` : ""}`),
    what && versus("Core-hours", amount, what.coreHours, what.coreHoursAuto, Math.max(what.coreHours, what.coreHoursAuto)),
    what && versus("Late requests", whole, what.lateRequests, what.lateRequestsAuto, Math.max(what.lateRequests, what.lateRequestsAuto)));
}

/* --- containers, conditions, learning --- */
export function containersBox(row) {
  if (!row.containers?.length) return null;
  return section("containers", "Containers", table("Table of containers", ["Name", "CPU", "Allowed"], row.containers.map(c =>
    [c.name, change(milli, c.cpuMilli, c.wantedCpuMilli), `${milli(c.minCpuMilli)} to ${milli(c.maxCpuMilli)}`])));
}

/* These say that something is wrong when they are True, the others when they are False. */
const BAD_WHEN_TRUE = new Set(["FallbackActive", "ConfigUnsupported", "ResizePending", "ScalingLimited", "Paused"]);

function conditionItem(c) {
  const bad = c.status !== "Unknown" && (c.status === "True") === BAD_WHEN_TRUE.has(c.type);
  return element("li", { class: bad ? "bad" : null },
    element("b", {}, c.type), element("span", { class: "tag" }, c.status), element("span", { class: "soft by" }, moment(c.lastTransitionTime, state.now)),
    element("p", {}, [c.reason, c.message].filter(Boolean).join(": ")));
}

export function conditionsBox(row) {
  if (!row.conditions?.length) return null;
  return section("conditions", "Conditions", element("ul", { class: "conditions" }, ...row.conditions.map(conditionItem)));
}

export function learningBox(row) {
  const l = row.learning;
  if (!l) return null;
  const busy = l.progress !== null && l.progress !== undefined && l.progress < 1;
  return section("learning", "Learning",
    element("p", {}, element("span", { class: `tag learning-${l.state}` }, LEARNING[l.state] ?? l.state ?? "–"), " ", l.policy ?? ""),
    busy ? element("p", { class: "progress" }, element("progress", { max: 1, value: l.progress, "aria-label": "Progress" }), percent(l.progress)) : null,
    l.message ? element("p", { class: "soft" }, l.message) : null,
    l.since ? element("p", { class: "soft" }, `Thresholds decide since ${moment(l.since, state.now)}.`) : null,
    l.version ? element("p", { class: "soft" }, `Version ${whole(l.version)}${l.policy ? "" : ", which waits"}: ${originOf(l).toLowerCase()}`) : null,
    l.sha256 ? element("p", { class: "soft" }, "Policy ", element("code", { title: l.sha256 }, l.sha256.slice(0, 12))) : null);
}

/* What is wrong is said once, where the decision says it too. */
export const tellsMessage = row => Boolean(row.lastDecision?.time) && row.message === row.lastDecision.reason;

export function decisionBox(row) {
  const d = row.lastDecision;
  if (!d?.time) return null;
  return element("p", { class: `last-decision${tellsMessage(row) ? ` ${row.health}` : ""}` }, element("span", { class: "soft" }, `${moment(d.time, state.now)}  ${d.recommender ?? ""}`),
    d.action && d.action !== "None" ? element("b", {}, d.action) : null, element("span", {}, d.reason ?? ""));
}

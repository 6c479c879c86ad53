/* What `mpactl compare` wrote, by --html or --json, in one form. Files come from anywhere: all that is used is looked at. */

const MOST_BYTES = 64 << 20;
const FIELDS = ["trace", "function", "recommender", "requests", "violation_ratio", "p99_ms", "goal_ms", "cpu_core_seconds", "cpu_utilization", "replicas_mean", "actions", "cost_vs_oracle"];

const numeric = v => v === null || typeof v === "number";
const numbers = (list, count) => Array.isArray(list) && list.length === count && list.every(numeric);

function checkRow(row, at) {
  if (!Array.isArray(row) || row.length < FIELDS.length) throw new Error(`rows[${at}] should be a list of ${FIELDS.length} figures.`);
  row.forEach((value, i) => {
    if (i < FIELDS.length && !(i < 3 ? typeof value === "string" : numeric(value)))
      throw new Error(`rows[${at}]: ${FIELDS[i]} should be ${i < 3 ? "a text" : "a number or null"}.`);
  });
  return row;
}

function checkPlot(plot, at, runs) {
  const count = plot?.load?.length;
  if (typeof plot?.trace !== "string" || typeof plot.function !== "string" || !(plot.step_s > 0) || !numbers(plot.load, count))
    throw new Error(`plots[${at}] should have trace, function, step_s and load.`);
  if (!Array.isArray(plot.runs) || plot.runs.length !== runs) throw new Error(`plots[${at}].runs should have one entry for each of the ${runs} recommenders.`);
  for (const run of plot.runs)
    for (const key of ["latency", "replicas", "cpu", "used", "why"])
      if (!numbers(run?.[key], count)) throw new Error(`plots[${at}].runs: ${key} should be ${count} numbers.`);
  return plot;
}

function fromEmbedded(data) {
  for (const key of ["recommenders", "rows", "plots", "reasons"])
    if (!Array.isArray(data?.[key])) throw new Error(`It has no list "${key}", as reports of mpactl compare have.`);
  return {
    about: String(data.about ?? ""), note: String(data.note ?? ""), percentile: Number(data.percentile) || 99, allowed: Number(data.allowed) || 0.01,
    recommenders: data.recommenders.map(String), reasons: data.reasons.map(String),
    rows: data.rows.map(checkRow), plots: data.plots.map((p, i) => checkPlot(p, i, data.recommenders.length)),
  };
}

function fromRows(list) {
  const rows = list.map((row, i) => checkRow(FIELDS.map(field => row?.[field]), i));
  return { about: "", note: "", percentile: 99, allowed: 0.01, recommenders: [...new Set(rows.map(r => r[2]))], reasons: [], rows, plots: [] };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("It is no JSON, and no report of mpactl compare --html.");
  }
}

/* Found as text: nothing of the file becomes a document. The data has no "<" in it; nor may this script name an element. */
function embedded(text) {
  const data = /<[s]cript id="data" type="application\/json">([^<]*)</.exec(text);
  if (!data) throw new Error("This HTML file holds no data of mpactl compare --html.");
  return data[1];
}

export function parseReport(text) {
  const html = text.trimStart().startsWith("<");
  const data = parsed(html ? embedded(text) : text);
  if (Array.isArray(data) ? data.length === 0 : data?.rows?.length === 0) throw new Error("It has no results in it.");
  return Array.isArray(data) ? fromRows(data) : fromEmbedded(data);
}

export async function readReport(file) {
  if (file.size > MOST_BYTES) throw new Error(`It is larger than ${MOST_BYTES >> 20} MiB; reports of mpactl compare are smaller.`);
  return parseReport(await file.text());
}

/* One MPA's past: points as columns and marks, put together from answers and news that may overlap. */

export const COLUMNS_OF_TIME = ["requestsPerSecond", "latencyMs", "goalMs", "replicas", "wantedReplicas", "cpuMilli", "wantedCpuMilli", "utilization", "reward"];
const MOST_POINTS = 20000, MOST_MARKS = 2000;

const markKey = mark => [mark.time, mark.kind, mark.title, mark.text].join("\n");

export class Timeline {
  constructor() {
    this.points = { time: [] };
    for (const column of COLUMNS_OF_TIME) this.points[column] = [];
    this.marks = [];
    this.known = new Set();
  }

  get last() { return this.points.time.at(-1) ?? null; }

  /* An answer for times since `last`, which may have that one again. */
  add({ points, marks }) {
    const last = this.last ?? -Infinity;
    points.time.forEach((time, i) => {
      if (time <= last) return;
      this.points.time.push(time);
      for (const column of COLUMNS_OF_TIME) this.points[column].push(points[column]?.[i] ?? null);
    });
    const over = this.points.time.length - MOST_POINTS;
    if (over > 0) for (const column of Object.values(this.points)) column.splice(0, over);
    this.addMarks(marks ?? []);
  }

  addMarks(marks) {
    const more = marks.filter(mark => !this.known.has(markKey(mark)));
    for (const mark of more) this.known.add(markKey(mark));
    if (more.length > 0) this.marks = [...this.marks, ...more].sort((a, b) => a.time - b.time).slice(-MOST_MARKS);
    return more.length > 0;
  }

  /* What plots show: latency beyond the goal once more, to be seen at once. */
  get plotted() {
    const { latencyMs, goalMs } = this.points;
    const late = latencyMs.map((ms, i) => ms !== null && goalMs[i] !== null && ms > goalMs[i] ? ms : null);
    return { ...this.points, late };
  }
}

/* Numbers, times and states as people read them. */

/* With a minus sign, which is as wide as a digit. */
const upToDigits = (x, n, least = 0) => x.toLocaleString("en", { maximumFractionDigits: n, minimumFractionDigits: least }).replace("-", "−");
const digits = (x, n) => upToDigits(x, n, n);
const known = write => x => x === null || x === undefined || Number.isNaN(x) ? "–" : write(x);

export const amount = known(x => digits(x, Math.abs(x) >= 100 || Number.isInteger(x) ? 0 : Math.abs(x) >= 10 ? 1 : 2));
export const whole = known(x => digits(x, 0));
/* Policies differ by a hundredth of what they earn. */
export const earned = known(x => upToDigits(x, Math.abs(x) >= 1 ? 2 : 4));
export const fixed2 = known(x => digits(x, 2));
export const percent = known(x => `${digits(100 * x, 0)} %`);
export const finePercent = known(x => `${digits(100 * x, x > 0 && x < 0.0995 ? 2 : 1)} %`);
/* Always in thousandths of a core, so that figures below each other can be compared. */
export const milli = known(m => m === 0 ? "0" : `${Math.round(m)}m`);
export const duration = known(ms => ms >= 1e4 ? `${upToDigits(ms / 1e3, 1)} s` : ms >= 1e3 ? `${upToDigits(ms / 1e3, 2)} s` : `${upToDigits(ms, ms >= 10 ? 0 : 1)} ms`);

/* What is, and what is wanted where that differs. */
export const change = (write, from, to) => to === null || to === undefined || to === from ? write(from) : `${write(from)} → ${write(to)}`;

const two = n => String(n).padStart(2, "0");
const time = d => `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
const day = d => `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;

/* Milliseconds since 1970, or what Kubernetes writes, as a date; null if it is neither. */
export function dateOf(value) {
  if (value === null || value === undefined || value === "") return null;
  const date = new Date(value);
  return Number.isNaN(date.getTime()) ? null : date;
}

/* The day is told where it is not that of `now`. */
export function moment(value, now) {
  const date = dateOf(value);
  if (!date) return "–";
  return now && day(new Date(now)) === day(date) ? time(date) : `${day(date)} ${time(date)}`;
}

/* For an axis whose marks are `step` milliseconds apart. */
export function axisTime(value, step) {
  const date = new Date(value);
  if (step >= 864e5) return day(date).slice(5);
  return step % 6e4 ? time(date) : time(date).slice(0, 5);
}

/* Seconds from a beginning. */
export const clock = (s, step) => `${two(Math.floor(s / 3600))}:${two(Math.floor(s / 60 % 60))}` + (step % 60 ? `:${two(Math.floor(s % 60))}` : "");

export const HEALTH = {
  trouble: { title: "Trouble", rank: 0, sign: "✕" },
  fallback: { title: "Fallback", rank: 1, sign: "↺" },
  late: { title: "Late", rank: 2, sign: "!" },
  unknown: { title: "Unknown", rank: 3, sign: "?" },
  ok: { title: "OK", rank: 4, sign: "✓" },
};
export const healthOf = row => HEALTH[row.health] ? row.health : "unknown";

export const ORIGINS = { shipped: "Shipped", kept: "Kept", bootstrapped: "Bootstrapped", retrained: "Retrained" };
export const OUTCOMES = { decides: "Decides", waits: "Waits", replaced: "Replaced", rolledBack: "Rolled back" };
export const originOf = version => ORIGINS[version.origin] ?? version.origin ?? "–";

export const LEARNING = {
  bootstrapping: "Bootstrapping", learning: "Learning", retraining: "Retraining", own: "Own policy", general: "General policy",
};

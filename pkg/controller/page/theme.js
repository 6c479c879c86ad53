/* Light or dark: as the system says, until the switch says otherwise. */
import { $, setAttribute } from "./dom.js";
import { storage, tell } from "./store.js";

const KEY = "faasrl-mpa.theme";
const always = storage("localStorage");
const system = matchMedia("(prefers-color-scheme: dark)");
const probe = document.createElement("i");
let colours = new Map();

const chosen = () => document.documentElement.dataset.theme;
const dark = () => chosen() ? chosen() === "dark" : system.matches;

/* A colour of the style sheet, for what is drawn by hand. */
export function colour(name) {
  if (!colours.has(name)) {
    probe.style.color = `var(--${name})`;
    colours.set(name, getComputedStyle(probe).color);
  }
  return colours.get(name);
}

/* "rgb(1, 2, 3)" as "rgba(1, 2, 3, share)". */
export const faint = (name, share) => colour(name).replace(/rgba?\(([^,]+,[^,]+,[^,)]+).*/, `rgba($1, ${share})`);

function showTheme() {
  colours = new Map();
  setAttribute($("theme"), "aria-pressed", String(dark()));
  tell("theme");
}

function flip() {
  const to = dark() ? "light" : "dark";
  document.documentElement.dataset.theme = to;
  always.setItem(KEY, to);
  showTheme();
}

export function startTheme() {
  probe.hidden = true;
  document.body.append(probe);
  const kept = always.getItem(KEY);
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
  system.addEventListener("change", showTheme);
  $("theme").addEventListener("click", flip);
  showTheme();
}

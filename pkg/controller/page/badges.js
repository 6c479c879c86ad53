/* Small signs that lists and single views have in common. Colour never says it alone. */
import { element, setAttribute, setText } from "./dom.js";
import { HEALTH, healthOf } from "./text.js";

export function healthBadge() {
  const sign = element("i", { "aria-hidden": "true" }), title = element("span", {});
  const badge = element("span", { class: "badge" }, sign, title);
  return {
    element: badge,
    set(row) {
      const health = healthOf(row);
      setAttribute(badge, "class", `badge ${health}`);
      setText(sign, HEALTH[health].sign);
      setText(title, HEALTH[health].title);
    },
  };
}

/* The last values as a line; nothing where fewer than two are known. */
export function sparkline(width, height) {
  const path = element("path", {}), zero = element("line", { x1: 0, x2: width, y1: height - 1, y2: height - 1 });
  const svg = element("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" }, zero, path);
  return {
    element: svg,
    set(values) {
      const numbers = values.filter(v => v !== null);
      const low = Math.min(...numbers), high = Math.max(...numbers), room = height - 4;
      const y = v => (2 + room * (1 - (high > low ? (v - low) / (high - low) : 0.5))).toFixed(1);
      const step = width / Math.max(1, values.length - 1);
      let joined = false, d = "";
      values.forEach((v, i) => {
        if (v !== null) d += `${joined ? "L" : "M"}${(i * step).toFixed(1)} ${y(v)}`;
        joined = v !== null;
      });
      svg.toggleAttribute("hidden", numbers.length < 2);
      path.setAttribute("d", d);
    },
  };
}

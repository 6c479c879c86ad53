/* Making what is on the page. Everything that is shown goes through text nodes: names and messages come from outside.
 * The page's security policy refuses style attributes and handlers in markup; there is no way to make them here. */

const SVG_NAMES = new Set(["svg", "path", "line", "rect", "circle"]);

/* element("button", { class: "plain", onclick: f }, "text", child, null) */
export function element(name, attributes = {}, ...children) {
  const e = SVG_NAMES.has(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") e.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) e.setAttribute(key, value === true ? "" : value);
  }
  e.append(...children.filter(c => c !== null && c !== undefined && c !== false));
  return e;
}

export const $ = id => document.getElementById(id);

/* Leaves what is right already alone: most of a page that is live does not change. */
export function setText(e, text) {
  if (e.firstChild?.nodeType === 3 && !e.firstChild.nextSibling) {
    if (e.firstChild.data !== text) e.firstChild.data = text;
  } else if (text !== "" || e.firstChild) {
    e.textContent = text;
  }
}

export function setAttribute(e, name, value) {
  if (value === null || value === false) e.removeAttribute(name);
  else if (e.getAttribute(name) !== value) e.setAttribute(name, value);
}

/* Many reasons to draw in one frame are one drawing. */
export function oncePerFrame(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  };
}

export const option = (value, text) => element("option", { value }, text);

export function section(id, title, ...children) {
  return element("section", { class: "panel", "aria-labelledby": id }, element("h2", { id }, title), ...children);
}

/* A table that scrolls by itself where it is wider than the page. */
export function table(label, titles, rows) {
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    element("table", {},
      element("thead", {}, element("tr", {}, ...titles.map(t => element("th", { scope: "col" }, t)))),
      element("tbody", {}, ...rows.map(cells => element("tr", {}, ...cells.map(c => element("td", {}, c)))))));
}

/* A share of one as a bar; text beside it says the same. */
export function meter(className) {
  const bar = element("i", {});
  const e = element("span", { class: `meter ${className ?? ""}`, "aria-hidden": "true" }, bar);
  return {
    element: e,
    set(share, bad) {
      e.hidden = share === null;
      bar.style.width = `${(100 * Math.min(Math.max(share ?? 0, 0), 1)).toFixed(1)}%`;
      e.classList.toggle("bad", Boolean(bad));
    },
  };
}

/* What is known of the cluster, and who is told when it changes: "rows", "marks", "about", "link". */

export const store = new EventTarget();
export const state = {
  about: null,
  rows: new Map(), /* by "namespace/name" */
  now: null,       /* the server's clock, at the last news */
  loaded: false,
  link: { kind: "connecting", text: "Connecting", more: "", why: "" },
};

/* sessionStorage or localStorage; what stands in for it where the browser forbids them is gone with the page. */
export function storage(kind) {
  try {
    return window[kind];
  } catch {
    const map = new Map();
    return { getItem: key => map.get(key) ?? null, setItem: (key, value) => map.set(key, value), removeItem: key => map.delete(key) };
  }
}

/* Kept in the row: sorting asks for it often. */
export const keyOf = row => row.key ??= `${row.namespace}/${row.name}`;
export const tell = (kind, detail) => store.dispatchEvent(new CustomEvent(kind, { detail }));

/* All rows there are. */
export function replaceRows(now, items) {
  state.rows = new Map(items.map(row => [keyOf(row), row]));
  state.now = now;
  state.loaded = true;
  tell("rows", { all: true, has: key => state.rows.has(key) });
}

export function changeRows(now, items, gone) {
  const changed = new Set();
  for (const row of items) {
    state.rows.set(keyOf(row), row);
    changed.add(keyOf(row));
  }
  for (const key of gone) {
    state.rows.delete(key);
    changed.add(key);
  }
  state.now = now;
  state.loaded = true;
  if (changed.size > 0) tell("rows", { all: false, has: key => changed.has(key) });
}

/* `more` is for the eye: it changes every second. `why` is what went wrong. */
export function setLink(kind, text, more = "", why = "") {
  state.link = { kind, text, more, why };
  tell("link");
}

export function setAbout(about) {
  state.about = about;
  tell("about");
}

/* Calls until the returned function is called. */
export function listen(kind, call) {
  const heard = event => call(event.detail);
  store.addEventListener(kind, heard);
  return () => store.removeEventListener(kind, heard);
}

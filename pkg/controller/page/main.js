/* Which view is shown, and what is around it. */
import { session } from "./api.js";
import { DetailView } from "./detail.js";
import { $, element, setAttribute, setText } from "./dom.js";
import { LearningView } from "./learning.js";
import { ListView } from "./list.js";
import { ReportView } from "./report.js";
import { SignInView } from "./signin.js";
import { listen, replaceRows, setAbout, setLink, state } from "./store.js";
import { Stream } from "./stream.js";
import { startTheme } from "./theme.js";

let view = null, stream = null, refusal = null;

class NothingView {
  constructor() {
    this.element = element("div", { class: "view" }, element("h1", {}, "There is nothing here"), element("p", {}, element("a", { href: "#/" }, "All autoscalers")));
  }

  title() { return "Nothing"; }

  stop() {}
}

/* "#/mpa/shop/cart?x=y" */
function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").map(part => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { parts, query: new URLSearchParams(query) };
}

function make({ parts, query }) {
  if (parts[0] === "report" && parts.length === 1) return ["report", new ReportView()];
  if (refusal) return ["", new SignInView(refusal, connect)];
  if (parts[0] === "" && parts.length === 1) return ["list", new ListView(query)];
  if (parts[0] === "learning" && parts.length === 1) return ["learning", new LearningView()];
  if (parts[0] === "mpa" && parts.length === 3) return ["list", new DetailView(parts[1], parts[2])];
  return ["", new NothingView()];
}

function show() {
  const first = view === null;
  view?.stop();
  const [name, made] = make(route());
  view = made;
  $("main").replaceChildren(view.element);
  document.title = `${view.title()} – faasrl-mpa`;
  for (const link of document.querySelectorAll("nav [data-view]")) setAttribute(link, "aria-current", link.dataset.view === name ? "page" : null);
  scrollTo(0, 0);
  if (!first) $("main").focus({ preventScroll: true });
  view.shown?.();
}

/* --- the controller --- */
function refused(error) {
  refusal = error;
  state.loaded = false;
  setLink("signed-out", "Signed out");
  $("sign-out").hidden = true;
  show();
}

function connect() {
  const asked = refusal !== null;
  refusal = null;
  stream?.stop();
  setLink("connecting", "Connecting");
  stream = new Stream(refused);
  if (asked) show();
}

function signOut() {
  session.set("", "");
  setAbout(null);
  replaceRows(null, []);
  connect();
  show();
}

function showLink() {
  const { kind, text, more } = state.about?.ended && state.link.kind === "live" ? { kind: "ended", text: "Ended", more: "" } : state.link;
  setAttribute($("link"), "class", `link ${kind}`);
  setText($("link-text"), text);
  setText($("link-more"), more);
}

function showAbout() {
  const { about } = state;
  $("simulated").hidden = !about?.simulated;
  $("standby").hidden = about?.leading !== false;
  $("sign-out").hidden = session.token === "";
  setAttribute($("link"), "title", about ? `faasrl-mpa ${about.version}${about.user ? `, as ${about.user}` : ""}` : null);
  showLink();
}

function pressed(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches("input, select, textarea")) return;
  if (view?.onKey?.(event)) event.preventDefault();
}

startTheme();
listen("link", showLink);
listen("about", showAbout);
addEventListener("hashchange", show);
document.addEventListener("keydown", pressed);
$("sign-out").addEventListener("click", signOut);
document.querySelector(".skip").addEventListener("click", event => {
  event.preventDefault();
  $("main").focus();
});
show();
connect();

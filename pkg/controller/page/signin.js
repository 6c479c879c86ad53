/* Asks for a token when the controller does. It goes to the controller, and stays in this tab. */
import { session } from "./api.js";
import { $, element } from "./dom.js";

const COMMAND = "kubectl create token SERVICEACCOUNT -n NAMESPACE";

export class SignInView {
  constructor(error, done) {
    this.token = element("input", { type: "password", id: "token", autocomplete: "off", spellcheck: "false", required: true, "aria-describedby": "token-help sign-in-error" });
    this.token.value = error.status === 403 ? session.token : "";
    this.namespace = element("input", { type: "text", id: "token-namespace", autocomplete: "off", spellcheck: "false", autocapitalize: "off", placeholder: "all namespaces", "aria-describedby": "namespace-help" });
    this.namespace.value = session.namespace;
    const submit = event => {
      event.preventDefault();
      session.set(this.token.value.trim(), this.namespace.value.trim());
      done();
    };
    const had = session.token !== "";
    this.element = element("div", { class: "view sign-in" }, element("form", { class: "panel", onsubmit: submit },
      element("h1", {}, error.status === 403 ? "Not allowed to see this" : "Sign in"),
      element("p", { class: had ? "notice" : "soft", id: "sign-in-error", role: had ? "alert" : null },
        had ? error.message : "The controller shows its autoscalers to those who may list them in the cluster."),
      element("label", { for: "token" }, "Token"), this.token,
      element("p", { class: "soft", id: "token-help" }, "Of an account that may list multidimpodautoscalers.autoscaling.faasrl.io. This makes one:"),
      element("pre", { tabindex: "0", "aria-label": "Command" }, element("code", {}, COMMAND)),
      element("label", { for: "token-namespace" }, "Namespace"), this.namespace,
      element("p", { class: "soft", id: "namespace-help" }, "Name one if the account may list them only there."),
      element("button", { type: "submit", class: "main" }, "Sign in")));
    this.refusal = error.status;
  }

  title() { return "Sign in"; }

  shown() { (this.refusal === 403 ? this.namespace : $("token")).focus(); }

  stop() {}
}

/* Asking the controller. The token lives as long as the tab, and nowhere else. */

import { storage } from "./store.js";

const TOKEN = "faasrl-mpa.token", NAMESPACE = "faasrl-mpa.namespace";

const tab = storage("sessionStorage");

export const session = {
  get token() { return tab.getItem(TOKEN) ?? ""; },
  get namespace() { return tab.getItem(NAMESPACE) ?? ""; },
  set(token, namespace) {
    for (const [key, value] of [[TOKEN, token], [NAMESPACE, namespace]]) {
      if (value) tab.setItem(key, value);
      else tab.removeItem(key);
    }
  },
};

/* What the server said is wrong; status 0: it could not be reached. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }

  get refused() { return this.status === 401 || this.status === 403; }
}

function address(path, query) {
  const all = new URLSearchParams(query);
  if (session.namespace) all.set("namespace", session.namespace);
  const text = all.toString();
  return `/api/v1/${path}${text && "?"}${text}`;
}

async function failure(answer) {
  const body = await answer.json().catch(() => null);
  return new ApiError(answer.status, body?.error ?? `the controller answered ${answer.status}`);
}

export async function request(path, { query = {}, signal } = {}) {
  const headers = session.token ? { Authorization: `Bearer ${session.token}` } : {};
  let answer;
  try {
    answer = await fetch(address(path, query), { headers, signal, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The controller cannot be reached.");
  }
  if (!answer.ok) throw await failure(answer);
  return answer;
}

export async function get(path, options) {
  const answer = await request(path, options);
  try {
    return await answer.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, `What the controller answered to ${path} is no JSON.`);
  }
}

export const mpaPath = (namespace, name) => `mpas/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;

/* News from the controller as they come. A stream that ends, or is silent for too long, is opened again after a while
 * that grows; meanwhile the list is asked for, so that a server with no stream left to give is followed as well. */
import { get, request } from "./api.js";
import { changeRows, replaceRows, setAbout, setLink, tell } from "./store.js";

const SILENCE_MS = 40e3, FIRST_MS = 4e3, LONGEST_WAIT_MS = 30e3, ABOUT_MS = 10e3;

/* Events of a text/event-stream, from pieces of text cut anywhere. */
export class EventLines {
  constructor(call) {
    this.call = call;
    this.parts = []; /* of a line whose end is not there yet: the first one may have megabytes */
    this.event = "";
    this.data = [];
  }

  add(text) {
    const lines = text.split("\n");
    for (let i = 0; i < lines.length - 1; i++) {
      this.parts.push(lines[i]);
      this.line(this.parts.join("").replace(/\r$/, ""));
      this.parts = [];
    }
    this.parts.push(lines[lines.length - 1]);
  }

  line(line) {
    if (line === "") {
      if (this.data.length > 0) this.call(this.event, this.data.join("\n"));
      this.event = "";
      this.data = [];
    } else if (line.startsWith("event:")) {
      this.event = line.slice(6).trim();
    } else if (line.startsWith("data:")) {
      this.data.push(line.slice(line[5] === " " ? 6 : 5));
    }
  }
}

export class Stream {
  constructor(refused) {
    this.refused = refused; /* called with what the server said, which ends the stream */
    this.tries = 0;
    this.stopped = false;
    this.hurry = () => this.wake?.();
    addEventListener("online", this.hurry);
    document.addEventListener("visibilitychange", this.hurry);
    this.run();
  }

  stop() {
    this.stopped = true;
    this.abort?.abort();
    this.wake?.();
    removeEventListener("online", this.hurry);
    document.removeEventListener("visibilitychange", this.hurry);
  }

  async run() {
    while (!this.stopped) {
      let error;
      this.polled = false;
      try {
        setAbout(await get("about"));
        error = await this.follow();
        if (this.stopped) return;
        replaceRows(...await this.list());
        this.polled = error.status === 503;
      } catch (caught) {
        error = caught;
      }
      if (this.stopped) return;
      if (error?.refused) {
        this.stop();
        this.refused(error);
        return;
      }
      await this.pause(error);
    }
  }

  async list() {
    const { now, items } = await get("mpas");
    return [now, items];
  }

  /* Reads until it ends, and returns why. */
  async follow() {
    this.abort = new AbortController();
    let watch = setTimeout(() => this.abort.abort(), SILENCE_MS);
    const late = setTimeout(() => this.list().then(rows => this.first && replaceRows(...rows)).catch(() => {}), FIRST_MS);
    const about = setInterval(() => get("about").then(setAbout, () => {}), ABOUT_MS);
    this.first = true;
    try {
      const answer = await request("stream", { signal: this.abort.signal });
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      const lines = new EventLines((event, data) => this.news(event, data));
      for (let piece; !(piece = await reader.read()).done;) {
        clearTimeout(watch);
        watch = setTimeout(() => this.abort.abort(), SILENCE_MS);
        lines.add(piece.value);
      }
      return new Error("The controller ended the stream.");
    } catch (error) {
      return error;
    } finally {
      clearTimeout(watch);
      clearTimeout(late);
      clearInterval(about);
    }
  }

  news(event, data) {
    if (event === "mpas") {
      performance.mark("mpas-received");
      const { now, items, gone } = JSON.parse(data);
      if (this.first) replaceRows(now, items);
      else changeRows(now, items, gone ?? []);
      this.first = false;
      this.tries = 0;
      setLink("live", "Live");
    } else if (event === "marks") {
      tell("marks", JSON.parse(data));
    }
  }

  async pause(error) {
    const wait = this.polled ? 10e3 : Math.min(LONGEST_WAIT_MS, 1e3 * 2 ** this.tries) * (0.8 + 0.4 * Math.random());
    this.tries++;
    const end = performance.now() + wait;
    while (!this.stopped && performance.now() < end) {
      const seconds = Math.ceil((end - performance.now()) / 1e3);
      if (this.polled) setLink("polled", "Every 10 s", "", error.message);
      else setLink("broken", "Reconnecting", `in ${seconds} s`, error.message);
      const woken = await new Promise(done => {
        this.wake = () => done(true);
        setTimeout(() => done(false), Math.min(1e3, end - performance.now()));
      });
      if (woken && !document.hidden) break;
    }
    if (!this.stopped && !this.polled) setLink("connecting", "Connecting", "", error.message);
  }
}

"""A real browser, driven over its debugging pipe: nothing but chromium and Python is needed."""
import base64
import json
import os
import subprocess
import tempfile
import time

FLAGS = ["--headless", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--disable-default-apps", "--disable-extensions", "--no-first-run", "--hide-scrollbars",
         "--force-color-profile=srgb", "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe"]


class Page:
    """One page of a browser of its own. What it asked for, and what went wrong in it, is kept."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(prefix="report-browser-")
        ours, theirs = os.pipe(), os.pipe()  # what it reads, what it writes
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        argv = ["chromium", *FLAGS, *root, f"--user-data-dir={self.profile.name}", "about:blank"]
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{ours[0]} 4>&{theirs[1]} {ours[0]}<&- {theirs[1]}>&-', "_", *argv],
            pass_fds=(ours[0], theirs[1]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(ours[0])
        os.close(theirs[1])
        self.to, self.back = os.fdopen(ours[1], "wb", buffering=0), os.fdopen(theirs[0], "rb", buffering=0)
        self.rest, self.number, self.session = b"", 0, None
        self.requests, self.troubles, self.loaded = [], [], False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        self.session = None
        self.call("Browser.close")
        self.process.wait(timeout=20)
        self.to.close()
        self.back.close()
        self.profile.cleanup()

    # --- the protocol: JSON, each message ended by a zero byte ---
    def receive(self):
        while b"\0" not in self.rest:
            more = os.read(self.back.fileno(), 1 << 16)
            assert more, "the browser went away"
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def note(self, event):
        method, params = event["method"], event["params"]
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.troubles.append(params["exceptionDetails"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.troubles.append(params["args"])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.troubles.append(params["entry"])
        elif method == "Page.loadEventFired":
            self.loaded = True

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.to.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]
            if "method" in answer:
                self.note(answer)

    # --- what a person does ---
    def look(self, width=1200, height=900, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.settle()

    def open(self, file):
        self.loaded = False
        self.call("Page.navigate", url=file.resolve().as_uri())
        end = time.monotonic() + 30
        while not self.loaded and time.monotonic() < end:
            self.note_next()
        assert self.loaded, f"{file} did not load"
        self.settle()

    def note_next(self):
        message = self.receive()
        if "method" in message:
            self.note(message)

    def settle(self):
        """Until what was begun is drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def run(self, script):
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def place(self, selector):
        return self.run(f"(e => {{ e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect();"
                        f" return [b.x, b.y, b.width, b.height]; }})(document.querySelector({json.dumps(selector)}))")

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settle()

    def click(self, selector):
        x, y, width, height = self.place(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x + width / 2, y=y + height / 2, button="left",
                      clickCount=1)
        self.settle()

    def press(self, key, **more):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **more)
        self.settle()

    def choose(self, selector, value):
        self.run(f"(e => {{ e.value = {json.dumps(value)}; e.dispatchEvent(new Event('change')); }})"
                 f"(document.querySelector({json.dumps(selector)}))")
        self.settle()

    def screenshot(self, file):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

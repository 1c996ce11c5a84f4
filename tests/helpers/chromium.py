"""Drives a page in headless Chromium over DevTools; clicks and keys are real events."""

import contextlib
import json
import os
import shutil
import subprocess
import sys

import numpy as np

EXECUTABLE = shutil.which("chromium")
# Chromium reads messages from descriptor 3 and writes its own to 4.
LAUNCHER = """\
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
COMPLAINTS = "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"
KEY_CODES = {
    **{"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowUp": 38},
    **{"ArrowRight": 39, "ArrowDown": 40},
}


class Page:
    """A tab; `complaints` is what its console got, `requests` are addresses."""

    def __init__(self, reader, writer):
        self._reader, self._writer = reader, writer
        self._count, self._session, self._loaded = 0, None, False
        self.complaints, self.requests = [], []
        target = self.call("Target.createTarget", url="about:blank")
        attached = self.call("Target.attachToTarget", flatten=True, **target)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        """Sends a message; returns the answer."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._writer.write(json.dumps(message).encode() + b"\0")
        self._writer.flush()
        while True:
            answer = self._read()
            if answer.get("id") == message["id"]:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _read(self):
        buffer = bytearray()
        while (byte := self._reader.read(1)) not in (b"\0", b""):
            buffer += byte
        message = json.loads(buffer)
        method, params = message.get("method"), message.get("params")
        if method in COMPLAINTS:
            self.complaints.append(params)
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Page.loadEventFired":
            self._loaded = True
        return message

    def open(self, place):
        """Loads a file, or what stands at an address."""
        self._loaded = False
        url = place if isinstance(place, str) else place.as_uri()
        self.call("Page.navigate", url=url)
        while not self._loaded:
            self._read()

    def resize(self, width, height):
        size = {"width": width, "height": height, "deviceScaleFactor": 1}
        self.call("Emulation.setDeviceMetricsOverride", **size, mobile=False)

    def prefer(self, **features):
        """Sets media features, such as `prefers_color_scheme="dark"`."""
        features = [
            {"name": name.replace("_", "-"), "value": value}
            for name, value in features.items()
        ]
        self.call("Emulation.setEmulatedMedia", features=features)

    def evaluate(self, expression):
        """Returns the value of JavaScript, as JSON."""
        how = {"returnByValue": True, "awaitPromise": True}
        answer = self.call("Runtime.evaluate", expression=expression, **how)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def hover(self, selector):
        """Moves the mouse onto an element."""
        x, y = self.evaluate(f"""(() => {{
            const element = document.querySelector({json.dumps(selector)});
            element.scrollIntoView({{block: "center", inline: "center"}});
            const box = element.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2];
        }})()""")
        place = {"x": x, "y": y}
        self.call("Input.dispatchMouseEvent", type="mouseMoved", **place)
        return place

    def click(self, selector):
        event = {**self.hover(selector), "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, **event)

    def press(self, key):
        event = {"key": key, "code": key, "windowsVirtualKeyCode": KEY_CODES[key]}
        text = {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **event, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def choose(self, selector, value):
        """Walks through a `<select>` with the arrow keys."""
        values, selected = self.evaluate(f"""(() => {{
            const element = document.querySelector({json.dumps(selector)});
            element.focus();
            const values = [...element.options].map(({{value}}) => value);
            return [values, element.selectedIndex];
        }})()""")
        steps = values.index(str(value)) - selected
        for _ in range(abs(steps)):
            self.press("ArrowDown" if steps > 0 else "ArrowUp")


@contextlib.contextmanager
def browse(profile):
    """Gives a `Page`; `profile` is an empty folder for the browser."""
    ours, theirs = os.pipe()
    inputs, outputs = os.pipe()
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", LAUNCHER, str(inputs), str(theirs), EXECUTABLE),
            *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
            *("--remote-debugging-pipe", f"--user-data-dir={profile}"),
            "--disable-background-networking",
        ],
        pass_fds=(inputs, theirs),
        stderr=subprocess.DEVNULL,
    )
    os.close(inputs)
    os.close(theirs)
    try:
        with open(ours, "rb") as reader, open(outputs, "wb") as writer:
            yield Page(reader, writer)
    finally:
        process.terminate()
        process.wait()


def contrasts(page, selector, name):
    """Returns the contrast of a colour (`name`) of elements with what is behind."""
    pairs = page.evaluate(
        f"[...document.querySelectorAll({json.dumps(selector)})]"
        ".map((element) => {"
        " const canvas = document.createElement('canvas');"
        " const context = canvas.getContext('2d');"
        " const paint = (color) => { context.fillStyle = color;"
        "  context.fillRect(0, 0, 1, 1);"
        "  return [...context.getImageData(0, 0, 1, 1).data]; };"
        f" const name = {json.dumps(name)};"
        " let box = name === 'color' ? element : element.parentElement;"
        " const back = (e) => getComputedStyle(e).backgroundColor;"
        " while (back(box) === 'rgba(0, 0, 0, 0)') box = box.parentElement;"
        " return [paint(back(box)), paint(getComputedStyle(element)[name])];"
        "})"
    )
    light, dark = np.sort(luminance(pairs)).T[::-1]
    return (light + 0.05) / (dark + 0.05)


def luminance(colors):
    """Relative luminance of sRGB (WCAG 2.2); the last axis is the colour."""
    part = np.array(colors)[..., :3] / 255
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]

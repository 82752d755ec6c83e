"""Headless Chromium driven over its debugging pipe: JSON messages that end in a zero byte."""

import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--no-first-run",
    "--remote-debugging-pipe",
    "--window-size=1200,900",
)


def executable():
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


@dataclass
class Page:
    """One open tab. ``events`` collects the browser's unsolicited messages."""

    read: int
    write: int
    session: str = ""
    events: list[dict[str, Any]] = field(default_factory=list)
    _number: int = 0
    _rest: bytes = b""

    def call(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            answer = self._next(deadline)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])
            self.events.append(answer)
        raise TimeoutError(method)

    def _next(self, deadline):
        while b"\0" not in self._rest:
            if not select.select([self.read], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser says nothing")
            said = os.read(self.read, 1 << 16)
            if not said:
                raise ConnectionError("the browser ended")
            self._rest += said
        line, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(line))

    def js(self, expression):
        """The value of an expression in the page; promises are awaited."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, expression):
        deadline = time.monotonic() + 60
        while not self.js(expression):
            if time.monotonic() > deadline:
                raise TimeoutError(expression)
            time.sleep(0.05)

    def requests(self):
        """All addresses requested by the page, itself included."""
        sent = [e["params"] for e in self.events if e["method"] == "Network.requestWillBeSent"]
        return [str(params["request"]["url"]) for params in sent]

    def complaints(self):
        """Errors and warnings of scripts and of the browser about the page."""
        found = []
        for event in self.events:
            params = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(params["exceptionDetails"]))
            elif event["method"] == "Runtime.consoleAPICalled" and params["type"] != "log":
                found.append(json.dumps(params["args"]))
            elif event["method"] == "Log.entryAdded":
                found.append(json.dumps(params["entry"]))
        return found


_LAUNCH = """
import os, sys
os.dup2(int(sys.argv[1]), 3)  # where the browser reads commands
os.dup2(int(sys.argv[2]), 4)  # where it answers
os.execv(sys.argv[3], sys.argv[3:])
"""


def _high_pipe():
    """A pipe whose numbers are above the ones that the browser reserves."""
    read, write = os.pipe()
    high = (fcntl.fcntl(read, fcntl.F_DUPFD, 20), fcntl.fcntl(write, fcntl.F_DUPFD, 20))
    os.close(read)
    os.close(write)
    return high


@contextlib.contextmanager
def opened(path, profile, script=True):
    """The file in a separate browser, with console and network watched from the start."""
    here_read, there_write = _high_pipe()
    there_read, here_write = _high_pipe()
    browser = [str(executable()), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(
        [sys.executable, "-c", _LAUNCH, str(there_read), str(there_write), *browser],
        pass_fds=(there_read, there_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(there_read)
    os.close(there_write)
    try:
        page = Page(here_read, here_write)
        target = page.call("Target.createTarget", url="about:blank")["targetId"]
        page.session = page.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Runtime", "Log", "Network", "Page"):
            page.call(f"{domain}.enable")
        page.call("Emulation.setScriptExecutionDisabled", value=not script)
        page.call("Page.navigate", url=path.as_uri())
        page.wait("document.readyState === 'complete' && location.protocol === 'file:'")
        yield page
    finally:
        process.terminate()
        process.wait(timeout=30)
        os.close(here_read)
        os.close(here_write)


def resize(tab, width, height=900):
    """Show the page in a window of this size, on a phone if it is narrow."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    tab.call("Emulation.setDeviceMetricsOverride", **size)

"""A headless Chromium, driven through its debugging pipe: NUL-ended JSON messages on file descriptors 3 and 4."""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
]
SECONDS = 60


@dataclass
class Page:
    """What a page was, at one width and in one scheme."""

    overflow: int  # pixels by which it is wider than the window
    widest: str  # the first element that sticks out, empty when none does
    text: str
    screenshot: bytes  # PNG
    messages: list[str] = field(default_factory=list)  # of the console: errors and warnings
    requests: list[str] = field(default_factory=list)  # URLs


OVERFLOW = "document.documentElement.scrollWidth - window.innerWidth"
WIDEST = """(() => { for (const e of document.querySelectorAll('body *')) {
  const box = e.getBoundingClientRect();
  if (box.width > 0 && (box.right > window.innerWidth + 1 || box.left < -1)) return e.outerHTML.slice(0, 200);
} return ''; })()"""


class Browser:
    def __init__(self, reader: int, writer: int):
        self._reader, self._writer = reader, writer
        self._numbers = itertools.count(1)
        self._pending = b""
        self._events: list[dict[str, Any]] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = ""
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def open(self, path: Path, width: int, scheme: str) -> Page:
        """Loads a file in a window of that width, `scheme` light or dark."""
        self._events.clear()
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self._call("Page.navigate", url=path.as_uri())
        self._wait_for("Page.loadEventFired")
        screenshot = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        page = Page(
            overflow=self._evaluate(OVERFLOW),
            widest=self._evaluate(WIDEST),
            text=self._evaluate("document.body.innerText"),
            screenshot=base64.b64decode(screenshot),
        )
        for event in self._events:
            parameters = event["params"]
            if event["method"] == "Network.requestWillBeSent":
                page.requests.append(parameters["request"]["url"])
            elif event["method"] in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
                page.messages.append(json.dumps(parameters))
        return page

    def _evaluate(self, expression: str) -> Any:
        return self._call("Runtime.evaluate", expression=expression, returnByValue=True)["result"]["value"]

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if getattr(self, "_session", ""):
            message["sessionId"] = self._session
        os.write(self._writer, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self._events.append(answer)

    def _wait_for(self, method: str) -> None:
        while not any(event.get("method") == method for event in self._events):
            self._events.append(self._receive())

    def _receive(self) -> dict[str, Any]:
        end = time.monotonic() + SECONDS
        while b"\0" not in self._pending:
            ready, _, _ = select.select([self._reader], [], [], max(0, end - time.monotonic()))
            assert ready, f"Chromium is silent for {SECONDS} s"
            block = os.read(self._reader, 1 << 16)
            assert block, "Chromium has ended"
            self._pending += block
        message, _, self._pending = self._pending.partition(b"\0")
        return json.loads(message)


@contextmanager
def open_browser(folder: Path) -> Iterator[Browser]:
    """A browser with its profile in `folder`, ended when the block is left."""
    program = shutil.which("chromium")
    assert program, "chromium is not installed; run make test, or apt-get install chromium"
    to_browser, writer = os.pipe()
    reader, from_browser = os.pipe()
    command = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
    words = ["bash", "-c", command, "--", program, *FLAGS, f"--user-data-dir={folder / 'profile'}"]
    with (folder / "chromium.log").open("wb") as log:
        child = subprocess.Popen(words, pass_fds=(to_browser, from_browser), stdout=log, stderr=log)
    os.close(to_browser)
    os.close(from_browser)
    try:
        yield Browser(reader, writer)
    finally:
        child.terminate()
        child.wait(timeout=30)
        os.close(reader)
        os.close(writer)

"""A browser for tests, and pages in it. No test waits for either for ever.

Playwright limits how long a click or a selector may take, but not how long a promise in the page may take to
settle, nor how long a page may compute. So promises race with a timer in the page, and where even that says
nothing, the browser is killed: whatever waits for it then fails.
"""

from __future__ import annotations

import os
import signal
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserType, Page

_OPTIONS = (
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-renderer-backgrounding", "--disable-backgrounding-occluded-windows",
)  # fmt: skip
_PATIENCE = 60.0  # seconds for one action
LONGEST = 120.0
"""Seconds after which the browser of a test is killed."""
FRAME = """new Promise((done) => { setTimeout(done, 500);
    requestAnimationFrame(() => requestAnimationFrame(done)); })"""
"""A promise that settles when the next frame is painted, or soon where none is."""


class Guarded:
    """A running browser whose process can be ended from outside."""

    def __init__(self, browser: Browser, mark: str) -> None:
        self.browser = browser
        self._mark = mark

    def kill(self) -> None:
        """End the browser's processes that this test run started, at once."""
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if self._mark.encode() in (entry / "cmdline").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)

    @contextmanager
    def at_most(self, seconds: float) -> Iterator[None]:
        """Kill the browser if this takes longer."""
        timer = threading.Timer(seconds, self.kill)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


@contextmanager
def driver() -> Iterator[BrowserType]:
    """Start Playwright, of which there can be one."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as found:
        yield found.chromium


@contextmanager
def started(kind: BrowserType, chromium: str) -> Iterator[Guarded]:
    """Start a browser; it is closed, or else killed, at the end."""
    mark = f"--started-by-test={uuid.uuid4()}"  # unknown to Chromium, which ignores it
    found = kind.launch(executable_path=chromium, args=[*_OPTIONS, mark], timeout=1000 * _PATIENCE)
    guarded = Guarded(found, mark)
    yield guarded
    with guarded.at_most(_PATIENCE):
        found.close()


class Opened:
    """A page, with everything that it complained about or asked for."""

    def __init__(self, browser: Guarded, file: Path, **options: Any) -> None:
        self.page: Page = browser.browser.new_page(reduced_motion="reduce", **options)
        self.page.context.set_default_timeout(1000 * _PATIENCE)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())
        self.page.wait_for_selector("html[data-ready]")

    def settled(self, promise: str, argument: object = None, seconds: float = _PATIENCE) -> Any:
        """Return what a promise (an expression in ``argument``) settles to, which may take so long."""
        late = f"no answer within {seconds:g} s"
        return self.page.evaluate(
            f"(argument) => Promise.race([{promise}, new Promise((_, refuse) =>"
            f" setTimeout(() => refuse(new Error('{late}')), {1000 * seconds}))])",
            argument,
        )

    def scroll(self) -> None:
        """Let every figure come into view."""
        figures = self.page.evaluate("document.querySelectorAll('figure').length")
        for k in range(figures):
            self.page.evaluate(
                "(k) => document.querySelectorAll('figure')[k].scrollIntoView({behavior: 'instant'})", k
            )
            self.frame()
        self.page.wait_for_function("!document.querySelector('.chart:not(:has(svg))')")

    def move(self, name: str, stop: int) -> None:
        """Move a slider to a stop."""
        self.page.locator(f"#slider-{name}").fill(str(stop))
        self.frame()

    def frame(self) -> None:
        """Let the page show what changed."""
        self.settled(FRAME)

    def rows(self) -> dict[int, dict[str, Any]]:
        """Return what the call tree shows: value and share of every row, by the call path's id."""
        found = self.page.evaluate(
            """() => [...document.querySelectorAll(".tree tbody tr")].map((row) => [Number(row.dataset.id),
                {value: Number(row.querySelector("data").value), share: row.cells[1].innerText,
                 text: row.querySelector("data").innerText}])"""
        )
        return dict(found)

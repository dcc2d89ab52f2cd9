"""The addresses: a list, a page per campaign with its report, a stream of changes, and all of it as JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import resources

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from orchestrator.control.serving import files, pages
from orchestrator.control.serving.builds import Reports
from orchestrator.control.serving.campaigns import Board, Row, ServedCampaign
from orchestrator.control.serving.guard import FILES, REPORT, Guard
from orchestrator.errors import OrchestratorError
from orchestrator.types import Attempt

LOOK = 1.0  # seconds between looks at the journals
_FIND = 5  # looks between searches for new campaigns
_ALIVE = 15.0  # seconds without an event after which a comment shows that the connection lives
_ATTEMPT = "/campaigns/{key}/runs/{point}/{run}/{attempt}"  # as the report has it, from where it is served
_ASSETS = {"live.js": "text/javascript", "live.css": "text/css"}


class Site:
    """The campaigns, their reports, and those who wait for changes."""

    def __init__(self, board: Board, reports: Reports | None = None, look: float = LOOK):
        self.board = board
        self.reports = reports or Reports(self.changed)
        self._look = look
        self._waiting = asyncio.Event()
        self._closed = False

    def close(self) -> None:
        """End all streams of events: a server that stops waits for its answers to end."""
        self._closed = True
        self.changed()

    def changed(self) -> None:
        """Wake all who wait for a change."""
        self._waiting.set()
        self._waiting = asyncio.Event()

    async def wait(self) -> bool:
        """Wait for a change; return whether there was one before the time was up."""
        try:
            await asyncio.wait_for(self._waiting.wait(), _ALIVE)
        except TimeoutError:
            return False
        return True

    async def watch(self) -> None:
        """Follow all journals, in a thread: the first reading of a large one takes seconds."""
        looks = 0
        while True:
            if looks % _FIND == 0:
                before = set(self.board.campaigns)
                await asyncio.to_thread(self.board.find)
                if before != set(self.board.campaigns):
                    self.changed()
            if await asyncio.to_thread(self.board.look):
                self.changed()
            looks += 1
            await asyncio.sleep(self._look)

    def rows(self) -> list[Row]:
        """Return the rows, each with the version of its report, and whether one is being built."""
        return [self._with_report(row) for row in self.board.rows()]

    def _with_report(self, row: Row) -> Row:
        built = self.reports.newest(row["key"])
        campaign = self.board.campaigns.get(row["key"])
        stale = built is not None and campaign is not None and built.milestone != campaign.milestone
        return {
            **row,
            "report": None if built is None else built.version,
            "report_error": built.error if built is not None else "",
            "building": self.reports.building(row["key"]),
            "stale": stale,
        }

    def campaign(self, request: Request) -> ServedCampaign:
        """Return the campaign that an address names; the name is looked up, never used as a path."""
        found = self.board.campaigns.get(request.path_params["key"])
        if found is None:
            raise HTTPException(404, "no such campaign")
        return found

    async def overview(self, _: Request) -> Response:
        """Return the list."""
        return HTMLResponse(pages.overview(self.rows()))

    async def campaigns(self, _: Request) -> Response:
        """Return the list as JSON."""
        return JSONResponse(self.rows())

    async def page(self, request: Request) -> Response:
        """Return the page of a campaign."""
        return HTMLResponse(pages.campaign(self.campaign(request).row))

    async def status(self, request: Request) -> Response:
        """Return where a campaign stands, as a part of its page or as JSON."""
        campaign = self.campaign(request)
        try:
            document = await asyncio.to_thread(campaign.document)
        except (OrchestratorError, OSError) as error:
            return Response(str(error), 503, media_type="text/plain")
        if request.url.path.endswith(".json"):
            return JSONResponse(document)
        return HTMLResponse(await asyncio.to_thread(pages.status, document))

    async def report(self, request: Request) -> Response:
        """Return the newest report, or a page that waits for it; let one be built if that is due."""
        campaign = self.campaign(request)
        self.reports.want(campaign)
        built = self.reports.newest(campaign.key)
        headers = {"Content-Security-Policy": REPORT}
        if built is not None and built.page is not None:
            return Response(built.page, media_type="text/html", headers=headers)
        error = built.error if built is not None and not self.reports.building(campaign.key) else ""
        return HTMLResponse(pages.waiting(error), 503 if error else 202, headers)

    async def files(self, request: Request) -> Response:
        """Return the list of the files of a failed attempt."""
        campaign, attempt = self._failed_attempt(request)
        found = await asyncio.to_thread(files.sizes, campaign.directory, attempt)
        return HTMLResponse(pages.files(attempt, found), headers={"Content-Security-Policy": FILES})

    async def file(self, request: Request) -> Response:
        """Return a file of a failed attempt, as text whatever it holds."""
        campaign, attempt = self._failed_attempt(request)
        try:
            found = await asyncio.to_thread(
                files.text, campaign.directory, attempt, request.path_params["name"]
            )
        except OSError as error:
            raise HTTPException(404, "no such file") from error
        return PlainTextResponse(found, headers={"Content-Security-Policy": FILES})

    def _failed_attempt(self, request: Request) -> tuple[ServedCampaign, Attempt]:
        """Return what an address names; its parts are compared with known ones, never used as paths."""
        campaign = self.campaign(request)
        names = request.path_params
        found = campaign.failed_attempt(f"{names['point']}/{names['run']}/{names['attempt']}")
        if found is None:
            raise HTTPException(404, "no failed attempt of that name")
        return campaign, found

    async def events(self, request: Request) -> Response:
        """Return a stream with each row that changes, and the keys of campaigns that are gone."""
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        return StreamingResponse(self._events(), media_type="text/event-stream")

    async def _events(self) -> AsyncIterator[str]:
        sent: dict[str, Row] = {}
        while not self._closed:
            rows = {row["key"]: row for row in self.rows()}
            for key in sent.keys() - rows.keys():
                yield _event("gone", {"key": key})
            for key, row in rows.items():
                if sent.get(key) != row:
                    yield _event("campaign", {**row, "html": pages.overview_row(row)})
            sent = rows
            if not await self.wait():
                yield ": nothing new\n\n"

    async def asset(self, request: Request) -> Response:
        """Return the script or the style of the pages."""
        name = request.url.path.rpartition("/")[2]
        text = resources.files(__package__).joinpath("assets", name).read_bytes()
        return Response(text, media_type=_ASSETS[name])


def _event(name: str, data: Row) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


def application(site: Site, token: str) -> ASGIApp:
    """Return what a server runs: everything below ``/TOKEN/``."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        watching = asyncio.create_task(site.watch())
        try:
            yield
        finally:
            watching.cancel()
            await site.reports.close()

    routes = [
        Route("/", site.overview),
        Route("/campaigns.json", site.campaigns),
        Route("/events", site.events),
        *(Route(f"/{name}", site.asset) for name in _ASSETS),
        Route("/campaigns/{key}/", site.page),
        Route("/campaigns/{key}/status", site.status),
        Route("/campaigns/{key}/status.json", site.status),
        Route("/campaigns/{key}/report", site.report),
        Route(_ATTEMPT, site.files),
        Route(f"{_ATTEMPT}/{{name}}", site.file),
    ]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.router.redirect_slashes = False
    return Guard(app, token)

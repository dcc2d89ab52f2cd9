"""What can be reached without the token, or by a foreign web page: nothing. With it: nothing but pages."""

from __future__ import annotations

import hmac
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.control.serving.running import TOKEN, Running, begin, served

SECRET = "what nobody may read"
FAILED = "p=1,n=20/time-2/attempt-1"
PAGES = ("/", "/campaigns.json", "/events", "/live.js", "/live.css", "/nothing")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("served")
    begin(top / "campaign", 100)
    (top / "campaign" / "campaign.yaml").write_text(SECRET)
    (top / "secret").write_text(SECRET)
    return top


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    with served(folder) as running:
        yield running


def key(server: Running) -> str:
    [row] = server.ask("/campaigns.json").document
    return str(row["key"])


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(
    "token",
    [
        "",
        "x",
        TOKEN[:-1],
        TOKEN + "x",
        TOKEN.upper(),
        "%00",
        "%C3%A9",
        "%FF",
        "..",
        f"x/{TOKEN}",
        f"/{TOKEN}",
    ],
)
def test_without_the_token_there_is_nothing(server: Running, token: str, path: str) -> None:
    answer = server.ask(path, token=token)
    assert answer.status == 403
    assert "campaign" not in answer.body and TOKEN not in answer.body
    assert TOKEN not in str(answer.headers)


def test_a_token_in_another_place_is_none(server: Running) -> None:
    for header in (f"Authorization: Bearer {TOKEN}", f"Cookie: token={TOKEN}", f"X-Token: {TOKEN}"):
        assert server.ask("/", token="", headers=[header]).status == 403
    assert server.ask(f"?token={TOKEN}", token="").status == 403


def test_tokens_are_compared_in_constant_time(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def compare(a: bytes, b: bytes) -> bool:
        compared.append((a, b))
        return False

    monkeypatch.setattr(hmac, "compare_digest", compare)
    assert server.ask("/").status == 403, "nothing else decides"
    assert compared == [(TOKEN.encode(), TOKEN.encode())]


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8765",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "localhost@evil.example",
        "evil.example#127.0.0.1",
        "0.0.0.0",
        "127.1",
        "[::]",
        "",
    ],
)
def test_a_name_that_an_attacker_points_here_is_refused(server: Running, host: str) -> None:
    """DNS rebinding: the browser takes such a page for one of evil.example, which may then read it."""
    answer = server.ask("/", host=host)
    assert answer.status == 400
    assert "campaign" not in answer.body


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:9", "localhost", "LOCALHOST:80", "[::1]:8765"])
def test_this_machine_may_be_named_with_any_port_as_tunnels_do(server: Running, host: str) -> None:
    assert server.ask("/", host=host).status == 200


def test_two_hosts_are_refused(server: Running) -> None:
    assert server.ask("/", headers=["Host: evil.example"]).status == 400
    assert server.ask("/", host="evil.example", headers=["Host: 127.0.0.1"]).status == 400
    forwarded = server.ask("/", host="evil.example", headers=["X-Forwarded-Host: 127.0.0.1"])
    assert forwarded.status == 400


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"])
@pytest.mark.parametrize("path", ["/", "/events", "/campaigns/x/report"])
def test_nothing_but_reading_is_answered(server: Running, method: str, path: str) -> None:
    answer = server.ask(path, method)
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_heads_have_no_body(server: Running) -> None:
    for path in ("/", "/campaigns.json", "/events", f"/campaigns/{key(server)}/report"):
        answer = server.ask(path, "HEAD")
        assert answer.status in (200, 202)
        assert answer.body == ""


@pytest.mark.parametrize(
    "path",
    [
        "/../secret",
        "/%2e%2e/secret",
        "/..%2fsecret",
        "/..%5csecret",
        "/campaigns/../secret",
        "/campaigns/..%2f..%2fsecret/",
        "/campaigns/{key}/../../secret",
        "/campaigns/{key}/campaign.yaml",
        "/campaigns/{key}/journal.jsonl",
        "/campaigns/{key}/report/../campaign.yaml",
        "/campaigns/{key}/..%2fcampaign.yaml",
        "/campaigns/{key}%2f..%2fcampaign/status",
        "/campaigns/campaign/",
        "/campaigns//{top}/campaign/status",
        "/campaigns/%2f{top}%2fcampaign/status",
        "/{top}/secret",
        "//{top}/secret",
        "/assets/live.js",
        "/live.js/../app.py",
        "/app.py",
        "/live.js%00.css",
    ],
)
def test_no_path_leads_to_a_file(server: Running, folder: Path, path: str) -> None:
    answer = server.ask(path.format(key=key(server), top=str(folder).removeprefix("/")))
    assert answer.status == 404
    assert SECRET not in answer.body


@pytest.fixture
def failed(folder: Path) -> Iterator[Path]:
    """The directory of a failed attempt."""
    path = folder / "campaign" / "runs" / FAILED
    path.mkdir(parents=True)
    yield path
    shutil.rmtree(folder / "campaign" / "runs", ignore_errors=True)


def _link_file(path: Path, secret: Path) -> None:
    (path / "stderr").symlink_to(secret)


def _link_attempt(path: Path, secret: Path) -> None:
    path.rmdir()
    _elsewhere(secret)
    path.symlink_to(secret.parent / "elsewhere")


def _link_run(path: Path, secret: Path) -> None:
    shutil.rmtree(path.parent)
    _elsewhere(secret)
    (secret.parent / "elsewhere" / path.name).mkdir(exist_ok=True)
    (secret.parent / "elsewhere" / path.name / "stderr").write_text(SECRET)
    path.parent.symlink_to(secret.parent / "elsewhere")


def _elsewhere(secret: Path) -> None:
    (secret.parent / "elsewhere").mkdir(exist_ok=True)
    (secret.parent / "elsewhere" / "stderr").write_text(SECRET)


def _pipe(path: Path, secret: Path) -> None:
    os.mkfifo(path / "stderr")


def _folder(path: Path, secret: Path) -> None:
    (path / "stderr").mkdir()
    (path / "stderr" / "stderr").write_text(SECRET)


@pytest.mark.parametrize("trap", [_link_file, _link_attempt, _link_run, _pipe, _folder])
def test_only_plain_files_of_a_failed_attempt_are_read(
    server: Running, folder: Path, failed: Path, trap: Callable[[Path, Path], None]
) -> None:
    """What a program leaves in its directory may be a link to anything, or a pipe that nobody writes to."""
    attempt = f"/campaigns/{key(server)}/runs/{FAILED}"
    (failed / "stderr").write_text("as it should be")
    assert server.ask(f"{attempt}/stderr").body == "as it should be"
    (failed / "stderr").unlink()
    trap(failed, folder / "secret")
    for path in (attempt, f"{attempt}/stderr", f"{attempt}/stderr/stderr"):
        answer = server.ask(path)
        assert SECRET not in answer.body and "stderr" not in answer.body
        assert answer.status == (200 if path == attempt else 404)


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../campaign.yaml",
        "/..%2f..%2f..%2f..%2fcampaign.yaml",
        "/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/secret",
        "/stderr/../../../../../../secret",
        "/stderr%00",
        "/stderr/",
        "//stderr",
        "/.%2fstderr",
        "/request.json",
        "/environment.recorded",
    ],
)
def test_no_path_leads_out_of_a_failed_attempt(server: Running, failed: Path, path: str) -> None:
    (failed / "stderr").write_text("as it should be")
    for name in ("request.json", "environment.recorded"):
        (failed / name).write_text(SECRET)
    answer = server.ask(f"/campaigns/{key(server)}/runs/{FAILED}{path}")
    assert answer.status == 404
    assert SECRET not in answer.body


def test_files_run_no_scripts_and_are_never_taken_for_pages(server: Running, failed: Path) -> None:
    (failed / "stderr").write_text("<script>alert(1)</script>")
    for name, kind in (("", "text/html"), ("/stderr", "text/plain")):
        answer = server.ask(f"/campaigns/{key(server)}/runs/{FAILED}{name}")
        _check_headers(answer.headers)
        assert answer.headers["content-type"] == f"{kind}; charset=utf-8"
        policy = answer.headers["content-security-policy"]
        assert policy.endswith("; sandbox") and "script" not in policy


def test_another_campaign_has_files_of_its_own_only(server: Running, failed: Path) -> None:
    (failed / "stderr").write_text(SECRET)
    assert server.ask(f"/campaigns/{'0' * 16}/runs/{FAILED}/stderr").status == 404
    assert server.ask(f"/campaigns/{key(server)}/runs/p=1,n=20/time-1/attempt-1/stderr").status == 404


@pytest.mark.parametrize("path", ["/campaigns", "/campaigns/", "/assets/", "/runs/", "/campaigns/{key}"])
def test_there_are_no_directory_listings(server: Running, path: str) -> None:
    assert server.ask(path.format(key=key(server))).status == 404


@pytest.mark.parametrize(
    "path", [*PAGES, "/campaigns/{key}/", "/campaigns/{key}/status", "/campaigns/{key}/report"]
)
def test_every_answer_keeps_the_token_to_itself(server: Running, path: str) -> None:
    method = "HEAD" if path == "/events" else "GET"  # a stream has no end
    answer = server.ask(path.format(key=key(server)), method)
    _check_headers(answer.headers)
    assert TOKEN not in answer.body


@pytest.mark.parametrize("request_", [{"token": "x"}, {"host": "evil.example"}, {"method": "POST"}])
def test_refusals_have_the_same_headers(server: Running, request_: dict[str, str]) -> None:
    _check_headers(server.ask("/", **request_).headers)


def _check_headers(headers: object) -> None:
    assert isinstance(headers, dict)
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["content-security-policy"].startswith("default-src 'none'; ")
    assert "access-control-allow-origin" not in headers
    assert "set-cookie" not in headers, "cookies are sent to all ports of a host"
    assert "server" not in headers


def test_pages_run_no_script_but_the_own_file(server: Running) -> None:
    policy = server.ask("/").headers["content-security-policy"]
    assert "script-src 'self'" in policy and "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


def test_reports_run_in_an_origin_of_their_own_and_reach_nothing(server: Running) -> None:
    path = f"/campaigns/{key(server)}/report"
    for answer in (server.ask(path), server.wait_for(path, lambda found: found.status == 200)):
        policy = answer.headers["content-security-policy"]
        assert "sandbox allow-scripts allow-downloads" in policy
        assert "allow-same-origin" not in policy and "connect-src" not in policy
    assert 'sandbox="allow-scripts allow-downloads"' in server.ask(f"/campaigns/{key(server)}/").body


@pytest.mark.parametrize(
    "name",
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "'><img src=x>",
        "&lt;img src=x&gt;",
        "\n\nevent: gone\ndata: {}",
        "../../secret",
        "\u202e\u2028",
    ],
)
def test_names_are_text(tmp_path: Path, name: str) -> None:
    begin(tmp_path / "c", 100, name)
    with served(tmp_path) as running:
        found = running.wait_for(
            "/campaigns.json", lambda answer: answer.document[0]["version"] > 0
        ).document[0]
        assert found["campaign"] == name
        bodies = [running.ask(path).body for path in ("/", f"/campaigns/{found['key']}/")]
        bodies.append(running.ask(f"/campaigns/{found['key']}/status").body)
        with running.stream() as stream:
            bodies.append(next(stream)[1]["html"])
    for body in bodies:
        assert "<img" not in body and not re.search(r"<script(?! defer src)", body)


def test_only_this_machine_can_connect(server: Running) -> None:
    """The socket listens at 127.0.0.1 alone, not at the other addresses of the machine."""
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in others - {"127.0.0.1"}:
        with pytest.raises(OSError), socket.create_connection((str(address), server.port), timeout=5):
            pass


def test_websockets_are_not_spoken(server: Running) -> None:
    headers = [
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ]
    assert server.ask("/events", "HEAD", headers=["Connection: Upgrade", *headers]).status == 200

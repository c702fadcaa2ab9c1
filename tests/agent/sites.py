"""Servers on loopback that cut, refuse and change, and a storage with short waits, for tests of the storage."""

import http.server
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from tests.peers.fixtures import s3

from argosy_agent.cache.storage import Storage
from argosy_agent.transfer.flow import Retry

__all__ = ["s3"]

Answer = tuple[int, dict[str, str], bytes]
QUICK = Retry(tries=4, first_s=0.01, most_s=0.02)


@dataclass
class Site:
    """A web server over `files` (path → bytes).

    `statuses` are answered in place of files, each once; `refused` always, by path; `cuts` are after how many bytes
    of a body the next connections end; `plain` turns ranges off, `marks` are ETags, `answers` are whole answers by
    path; `guard` may answer in place of anything. `requests` is every request: path and Range.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    statuses: list[int] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)
    marks: dict[str, str] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    plain: bool = False
    unsized: bool = False
    requests: list[tuple[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    before: Callable[[str], None] = lambda path: None
    guard: Callable[[str, Mapping[str, str]], Answer | None] = lambda path, headers: None
    url: str = ""

    def etag(self, path: str) -> str:
        """Return the ETag of a file; none where `marks` says so."""
        return self.marks.get(path, f'"{hash(self.files[path]) & 0xFFFFFFFF:x}"')


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers for a `Site`."""

    site: Site
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Send a file, a part of one, or what else the site is set to."""
        site, path = self.site, unquote(urlsplit(self.path).path)
        site.requests.append((self.path, self.headers.get("Range", "")))
        site.headers.append(dict(self.headers))
        site.before(path)
        status = site.refused.get(path) or (site.statuses.pop(0) if site.statuses else 0)
        if guarded := site.guard(path, self.headers):
            self._send(*guarded)
        elif status:
            self._send(status, {}, b"<Error><Code>Why</Code><Message>because</Message></Error>")
        elif self.path in site.answers or path in site.answers:
            self._send(*site.answers.get(self.path, site.answers.get(path, (500, {}, b""))))
        elif path in site.files:
            self._file(path)
        else:
            self._send(404, {"Content-Type": "text/plain"}, b"no such file")

    do_HEAD = do_GET  # noqa: N815

    def _file(self, path: str) -> None:
        body, requested = self.site.files[path], self.headers.get("Range", "")
        headers: dict[str, str] = {}
        if self.site.etag(path):
            headers = {"ETag": self.site.etag(path), "Last-Modified": "Wed, 21 Oct 2015 07:28:00 GMT"}
        if not requested or self.site.plain:
            self._send(200, headers, body)
            return
        first, _, last = requested.removeprefix("bytes=").partition("-")
        start, end = int(first), min(int(last) + 1 if last else len(body), len(body))
        if start >= len(body):
            self._send(416, {"Content-Range": f"bytes */{len(body)}"}, b"")
            return
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(body)}"
        self._send(206, headers, body[start:end])

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if not self.site.unsized:
            self.send_header("Content-Length", str(len(body)))
        else:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command == "HEAD":
            return
        cut = self.site.cuts.pop(0) if self.site.cuts and len(body) > 1 else None
        with suppress(OSError):
            self.wfile.write(body if cut is None else body[:cut])
            self.wfile.flush()
        if cut is not None or self.site.unsized:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""


class Server(http.server.ThreadingHTTPServer):
    """Clients that stop reading are no news."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing."""


@contextmanager
def web_server(
    handler: type[http.server.BaseHTTPRequestHandler], host: str = "127.0.0.1", certificate: Path | None = None
) -> Iterator[str]:
    """Run a web server and yield its URL; over TLS with a certificate, in a file with its key."""
    with Server((host, 0), handler) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http{'s' if certificate else ''}://{host}:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def serving(site: Site, certificate: Path | None = None) -> Iterator[Site]:
    """Serve the site; over TLS with a certificate, in a file with its key."""
    with web_server(type("SiteHandler", (Handler,), {"site": site}), certificate=certificate) as site.url:
        yield site


@pytest.fixture
def site() -> Iterator[Site]:
    """Yield a web server of the test's own."""
    with serving(Site()) as served:
        yield served


@pytest.fixture(scope="module")
def shared_site() -> Iterator[Site]:
    """Yield a web server for all examples of a property."""
    with serving(Site()) as served:
        yield served


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Return an empty cache folder."""
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"


@pytest.fixture
def storage(cache: Path, tmp_path: Path) -> Storage:
    """Return a storage with small parts and short pauses."""
    return Storage(cache, retry=QUICK, part=1000, secrets=tmp_path / "secrets", pvc_root=tmp_path / "pvc")


class Proxy:
    """Passes connections on to `port`; ends each of the next ones after as many answered bytes as `cuts` says."""

    def __init__(self, port: int) -> None:
        self._to, self.cuts = port, list[int]()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        """End."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._to))
            cut = self.cuts.pop(0) if self.cuts else None
            pairs = ((client, server, None), (server, client, cut))
            for source, target, limit in pairs:
                self._threads.append(threading.Thread(target=_pass_on, args=(source, target, limit)))
                self._threads[-1].start()


def _pass_on(source: socket.socket, target: socket.socket, limit: int | None) -> None:
    left = limit
    with suppress(OSError):
        while (left is None or left > 0) and (chunk := source.recv(65536)):
            target.sendall(chunk if left is None else chunk[:left])
            left = None if left is None else left - len(chunk)
    for item in (source, target):
        with suppress(OSError):
            item.shutdown(socket.SHUT_RDWR)
    source.close()


@pytest.fixture
def proxied() -> Iterator[Callable[[int], Proxy]]:
    """Yield a function that makes proxies before a port."""
    made: list[Proxy] = []

    def make(port: int) -> Proxy:
        made.append(Proxy(port))
        return made[-1]

    yield make
    for proxy in made:
        proxy.close()

"""A server with Prometheus' API of instant queries, whose answers a test chooses, bad ones too."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


def vector(*values: float) -> bytes:
    """Return the answer to an instant query with so many series."""
    result = [{"metric": {"of": str(number)}, "value": [0, str(value)]} for number, value in enumerate(values)]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


@dataclass
class StandinPrometheus:
    """Answers each query with `status` and `body`, once `go_on` is set. `queries` are those that it was sent."""

    port: int
    status: int = 200
    body: bytes = vector()
    go_on: threading.Event = field(default_factory=threading.Event)
    queries: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def say(self, body: bytes, status: int = 200) -> None:
        """Answer so from now on, at once."""
        self.status, self.body = status, body
        self.go_on.set()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen while the block runs; a query that waits at its end is answered."""
        standin = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"] or 0))
                standin.queries.append(parse_qs(urlsplit(self.path).query)["query"][0])
                standin.go_on.wait()
                self.send_response(standin.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(standin.body)))
                self.end_headers()
                self.wfile.write(standin.body)

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except ConnectionError:  # the client did not wait any longer
                    self.close_connection = True

        server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            self.go_on.set()
            server.shutdown()
            thread.join()
            server.server_close()

"""`python server.py FOLDER PORT`: serves a folder's files; the path can ask for trouble instead.

/models/PATH         the file
/status/CODE/PATH    an answer with that status
/half/PATH           half of the file, and then a closed connection
/slow/SECONDS/PATH   the file, that much later

A query is not looked at. Needs nothing but Python.
"""

import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    root = Path()

    def do_GET(self) -> None:
        how, _, rest = self.path.partition("?")[0].lstrip("/").partition("/")
        answer = {"models": self._file, "status": self._status, "half": self._half, "slow": self._slow}.get(how)
        if answer is None:
            self._refuse(404)
        else:
            answer(rest)

    def _status(self, rest: str) -> None:
        self._refuse(int(rest.partition("/")[0]))

    def _slow(self, rest: str) -> None:
        seconds, _, path = rest.partition("/")
        time.sleep(float(seconds))
        self._file(path)

    def _half(self, path: str) -> None:
        content = self._find(path)
        if content is not None:
            self._begin(len(content))
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True

    def _file(self, path: str) -> None:
        content = self._find(path)
        if content is not None:
            self._begin(len(content))
            self.wfile.write(content)

    def _find(self, path: str) -> bytes | None:
        file = (self.root / path).resolve()
        if not file.is_relative_to(self.root) or not file.is_file():
            self._refuse(404)
            return None
        return file.read_bytes()

    def _begin(self, length: int) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def _refuse(self, status: int) -> None:
        body = b"as the path asked\n"
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    """Serve until ended."""
    Handler.root = Path(sys.argv[1]).resolve()
    ThreadingHTTPServer(("", int(sys.argv[2])), Handler).serve_forever()


if __name__ == "__main__":
    main()

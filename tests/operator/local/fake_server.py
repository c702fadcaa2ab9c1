"""A tiny V2 server for tests: tritonserver's flags, explicit control, and models that multiply.

A version's factor is the number after `*` in its model.py; a model.py that raises does not load. Loading swaps at once.
"""

import argparse
import json
import re
import signal
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig


class RefusedError(Exception):
    """What is asked for cannot be done."""


@dataclass
class Models:
    """What is loaded: each version's factor, or an ensemble's pinned steps."""

    root: Path
    loaded: dict[str, dict[int, float | list[tuple[str, int]]]] = field(default_factory=dict)
    counts: dict[tuple[str, int], int] = field(default_factory=dict)

    def load(self, name: str) -> None:
        """Read a model's folder; what is loaded stays where it cannot be read."""
        config = text_format.Parse((self.root / name / "config.pbtxt").read_text(), ModelConfig())
        steps = [(step.model_name, step.model_version) for step in config.ensemble_scheduling.step]
        versions = config.version_policy.specific.versions
        self.loaded[name] = {v: steps or _factor(self.root / name / str(v) / "model.py") for v in versions}
        print(f"successfully loaded '{name}'", flush=True)

    def infer(self, name: str, value: float, version: int | None = None) -> float:
        """Send one number through a model's newest version, or another."""
        number = max(self.loaded[name]) if version is None else version
        self.counts[name, number] = self.counts.get((name, number), 0) + 1
        result = self.loaded[name][number]
        if isinstance(result, float):
            return value * result
        for step, pinned in result:
            value = self.infer(step, value, pinned)
        return value

    def index(self) -> list[dict[str, str]]:
        """Return the repository index."""
        every = [(name, version) for name, versions in self.loaded.items() for version in versions]
        return [{"name": name, "version": str(version), "state": "READY"} for name, version in every]

    def statistics(self) -> dict[str, Any]:
        """Return the statistics, as far as they are read."""
        zero = {"count": 0, "ns": 0}
        return {
            "model_stats": [
                {
                    "name": name,
                    "version": str(version),
                    "inference_stats": {"success": {"count": count, "ns": 0}, "fail": zero, "queue": zero},
                }
                for (name, version), count in self.counts.items()
            ]
        }


def _factor(file: Path) -> float:
    text = file.read_text()
    reported = re.search(r"raise ValueError\('(.*)'\)", text)
    if reported:
        raise RefusedError(f"failed to load: {reported[1]}")
    result = re.search(r"\* ([0-9.]+)", text)
    if result is None:
        raise RefusedError("model.py multiplies by nothing")
    return float(result[1])


class Handler(BaseHTTPRequestHandler):
    """The protocol."""

    protocol_version = "HTTP/1.1"
    models: Models
    token: str

    def do_GET(self) -> None:
        """Answer health, readiness and statistics."""
        parts = self.path.strip("/").split("/")
        if parts[1:] == ["models", "stats"]:
            self._answer(200, self.models.statistics())
        elif parts[-1] == "ready" and "models" in parts:
            self._answer(200 if parts[2] in self.models.loaded else 400, None)
        else:
            self._answer(200, None)

    def do_POST(self) -> None:
        """Answer index, load, unload and infer."""
        if "/repository/" in self.path and self.headers.get("Authorization") != f"Bearer {self.token}":
            self._answer(403, {"error": "this needs the control token"})
            return
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        parts = self.path.strip("/").split("/")
        try:
            self._answer(200, self._done(parts, body))
        except (RefusedError, OSError, KeyError) as error:
            self._answer(400, {"error": str(error)})

    def _done(self, parts: list[str], body: dict[str, Any]) -> Any:
        if parts[-1] == "index":
            return self.models.index()
        if parts[-1] == "load":
            return self.models.load(parts[3])
        if parts[-1] == "unload":
            del self.models.loaded[parts[3]]
            return None
        return {"outputs": [{"data": [self.models.infer(parts[2], float(body["inputs"][0]["data"][0]))]}]}

    def _answer(self, code: int, value: Any) -> None:
        content = b"" if value is None else json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing."""


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser()
    for flag in ("model-repository", "model-control-mode", "http-address", "grpc-address", "metrics-address"):
        parser.add_argument(f"--{flag}")
    parser.add_argument("--control-token-file", required=True)
    for flag in ("http-port", "grpc-port", "metrics-port", "exit-timeout-secs"):
        parser.add_argument(f"--{flag}", type=int)
    flags = parser.parse_args()
    Handler.token = Path(flags.control_token_file).read_text().strip()
    Handler.models = Models(Path(flags.model_repository))
    server = ThreadingHTTPServer((flags.http_address, flags.http_port), Handler)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    server.serve_forever()
    sys.exit(0)


if __name__ == "__main__":
    main()

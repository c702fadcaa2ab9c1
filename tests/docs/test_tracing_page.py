"""The picture of a trace in the page is that of a real one."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.peers.otlp import receiving, tree
from tests.serve.process import start

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "tracing.md"
MODELS = ROOT / "tests" / "models_traced"


def test_the_picture_is_that_of_a_real_trace(tmp_path: Path) -> None:
    with receiving() as receiver:
        settings = ["mode=opentelemetry", "level=TIMESTAMPS", "rate=1", f"opentelemetry,url={receiver.url}"]
        settings.append("opentelemetry,bsp_schedule_delay=50")
        server = start(MODELS, tmp_path / "server.log", *[f"--trace-config={setting}" for setting in settings])
        try:
            server.wait_until_ready()
            body = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}
            url = f"http://127.0.0.1:{server.ports['HTTP']}/v2/models/twice/infer"
            with urllib.request.urlopen(url, json.dumps(body).encode()) as answer:
                assert answer.status == 200
            spans = receiver.wait_for(6)
        finally:
            server.end()
    picture = "\n".join(_lines(tree(spans)))
    assert picture in PAGE.read_text()


def _lines(spans: dict[str, Any]) -> Iterator[str]:
    """Draw a tree."""
    drawn = list(_drawn(list(spans.items()), ""))
    width = max(len(name) for name, _ in drawn)
    return (f"{name:<{width}}  {' '.join(events)}" for name, events in drawn)


def _drawn(spans: list[tuple[str, Any]], indent: str, below_root: bool = False) -> Iterator[tuple[str, list[str]]]:
    for position, (name, span) in enumerate(spans, 1):
        is_last = position == len(spans)
        branch = ("└─ " if is_last else "├─ ") if below_root else ""
        yield indent + branch + name, span["events"]
        deeper = indent + (("   " if is_last else "│  ") if below_root else "")
        yield from _drawn(span["spans"], deeper, below_root=True)

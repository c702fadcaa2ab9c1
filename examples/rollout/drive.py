"""Sends requests to the model, releases its versions one after the other, and draws what came of it.

python examples/rollout/drive.py --picture rollout.svg
"""

import argparse
import asyncio
import json
import random
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

MANIFEST = Path(__file__).parent / "models.yaml"
TEXTS = ("good day", "not good", "thanks for the great help", "it is late and broken", "schön, merci à vous")
"""One in five is no ASCII, which version 3 does not read."""


@dataclass
class Course:
    """What was seen, by seconds since the beginning.

    `answers`: the time of each answer with its version, 0 where the request failed. `statuses`: `status.rollout`.
    """

    began: float = field(default_factory=time.monotonic)
    answers: list[tuple[float, int]] = field(default_factory=list)
    statuses: list[tuple[float, dict]] = field(default_factory=list)

    def now(self) -> float:
        """Return the seconds since the beginning."""
        return time.monotonic() - self.began


async def main() -> None:
    """Release the versions under load."""
    arguments, course = parsed(), Course()
    async with (
        # No limit of connections: on a busy machine requests would wait here, and not at the server.
        httpx.AsyncClient(base_url=arguments.url, limits=httpx.Limits(max_connections=None), timeout=60) as client,
        running(load(client, course, arguments.rate), observe(arguments.state, course)),
    ):
        for version in arguments.versions:
            declare(arguments.manifest, version)
            ending = await ended(arguments.state, version)
            print(f"version {version}: {ending['phase']}: {ending.get('message', '')}", flush=True)
            await asyncio.sleep(arguments.rest)
    failed = sum(not version for _, version in course.answers)
    print(f"{len(course.answers)} requests, of which {failed} failed")
    if arguments.record:
        arguments.record.write_text(json.dumps({"answers": course.answers, "statuses": course.statuses}))
    if arguments.picture:
        from picture import draw  # matplotlib is needed for this alone

        draw(course.answers, course.statuses, arguments.picture)
        print(f"wrote {arguments.picture}")


def parsed() -> argparse.Namespace:
    """Return the command's options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://localhost:8000", help="the server")
    parser.add_argument("--state", type=Path, default=Path(".argosy"), help="the state folder of argosy up")
    parser.add_argument("--manifest", type=Path, default=MANIFEST, help="the manifest that argosy up serves")
    parser.add_argument("--rate", type=float, default=150, help="requests a second")
    parser.add_argument("--rest", type=float, default=2, help="seconds between two releases")
    parser.add_argument("--versions", type=int, nargs="+", default=[2, 3], help="the versions to release")
    parser.add_argument("--record", type=Path, help="the file to write all answers and statuses to, as JSON")
    parser.add_argument("--picture", type=Path, help="the picture to write, as SVG or PNG")
    return parser.parse_args()


@asynccontextmanager
async def running(*works) -> AsyncIterator[None]:
    """Do works at the same time as the block, until it ends. An error of one of them ends the block."""
    async with asyncio.TaskGroup() as tasks:
        started = [tasks.create_task(work) for work in works]
        yield
        for task in started:
            task.cancel()


async def load(client: httpx.AsyncClient, course: Course, rate: float) -> None:
    """Send requests at a constant rate, whether earlier ones are answered or not."""
    # At random: texts in turn could be in step with the servers' division, which is exact.
    texts, number = random.Random(1), 0
    async with asyncio.TaskGroup() as requests:
        while True:
            requests.create_task(send(client, course, texts.choice(TEXTS)))
            number += 1
            await asyncio.sleep(max(0.0, number / rate - course.now()))


async def send(client: httpx.AsyncClient, course: Course, text: str) -> None:
    """Send one request that names no version. One without an answer counts as failed, too."""
    body = {"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1, 1], "data": [text]}]}
    try:
        answer = await client.post("/v2/models/polarity/infer", json=body)
        version = int(answer.json()["model_version"]) if answer.is_success else 0
    except httpx.HTTPError:
        version = 0
    course.answers.append((course.now(), version))


async def observe(state: Path, course: Course) -> None:
    """Read the rollout's status, as `argosy rollout status` does."""
    while True:
        course.statuses.append((course.now(), model(state)["status"].get("rollout") or {}))
        await asyncio.sleep(0.2)


def model(state: Path) -> dict:
    """Return the model with its status."""
    resources = json.loads((state / "status.json").read_text())["resources"]
    return next(resource for resource in resources if resource["kind"] == "InferenceModel")


def declare(manifest: Path, version: int) -> None:
    """Change the version in the manifest, as a commit in Git would."""
    text = re.sub(r"version: \d+", f"version: {version}", manifest.read_text())
    text = re.sub(r"file:models/\d+", f"file:models/{version}", text)
    written = manifest.with_suffix(".tmp")
    written.write_text(text)
    written.replace(manifest)


async def ended(state: Path, version: int) -> dict:
    """Wait until the rollout of a version has ended, and return its status."""
    while True:
        seen = model(state)
        rollout = seen["status"].get("rollout") or {}
        if seen["spec"]["version"] == version and rollout.get("phase") in ("Promoted", "Held"):
            return rollout
        await asyncio.sleep(0.2)


if __name__ == "__main__":
    asyncio.run(main())

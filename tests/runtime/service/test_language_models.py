"""A language model behind the data plane, decoupled or not, in a process or a thread."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.runtime.backends.language_model import output, pbtxt, request, save_model
from tests.runtime.backends.requests import parameter
from tests.runtime.service.conftest import Repository, Serve, infer, responses, single_response
from tests.waiting import until

from argosy_runtime.errors import DecoupledModelError
from argosy_runtime.telemetry.shadow.statistics import Obstacle

both = pytest.mark.parametrize("isolation", ["process", "thread"])


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the files of a tiny language model."""
    folder: Path = tmp_path_factory.mktemp("weights")
    save_model(folder)
    return {f"1/{file.name}": file.read_bytes() for file in folder.iterdir()}


@both
async def test_without_decoupling_every_request_has_one_answer(
    repository: Repository, serve: Serve, saved: dict[str, bytes], isolation: str
) -> None:
    repository.write("lm", dict(saved), pbtxt(decoupled=False, ISOLATION=isolation))
    plane = await serve(load_timeout=120.0)
    await plane.load("lm", None, {})
    alone = [await infer(plane, request(number, new=3 + number)) for number in range(1, 5)]
    together = await asyncio.gather(*(infer(plane, request(number, new=3 + number)) for number in range(1, 5)))
    assert [len(output(response)) for response in alone] == [4, 5, 6, 7]
    assert [output(response) for response in together] == [output(response) for response in alone]
    streamed = await single_response(plane, request(1, streaming=True))
    assert streamed.error is not None
    assert streamed.error.message == "Streaming is only supported in decoupled mode."


@both
async def test_a_decoupled_one_streams(
    repository: Repository, serve: Serve, saved: dict[str, bytes], isolation: str
) -> None:
    repository.write("lm", dict(saved), pbtxt(ISOLATION=isolation))
    plane = await serve(load_timeout=120.0)
    await plane.load("lm", None, {})
    tokens = [token async for part in responses(plane, request(5, new=6, streaming=True)) for token in output(part)]
    (full,) = [part async for part in responses(plane, request(5, new=6))]
    assert tokens == output(full)
    assert len(tokens) == 6
    with pytest.raises(DecoupledModelError):
        plane.submit(request(5), lambda response: None, single=True)


async def test_a_candidate_is_compared_by_its_tokens_however_they_come(
    repository: Repository, serve: Serve, saved: dict[str, bytes]
) -> None:
    traffic = json.dumps({"weights": {"1": 1_000_000, "2": 0}, "shadow": {"version": 2, "share": 1_000_000}})
    policy = "version_policy { all {} } " + parameter("version_traffic", traffic.replace('"', '\\"'))
    other = {name.replace("1/", "2/", 1): data for name, data in saved.items()}
    repository.write("lm", saved | other, pbtxt(ISOLATION="thread") + policy)
    plane = await serve(load_timeout=120.0)
    await plane.load("lm", None, {})
    (full,) = [part async for part in responses(plane, request(5, new=6, temperature=0.0))]
    streamed = [part async for part in responses(plane, request(5, new=6, temperature=0.0, streaming=True))]
    drawn = [part async for part in responses(plane, request(5, new=6, temperature=0.8))]
    assert (len(output(full)), len(streamed) > 1, len(drawn)) == (6, True, 1)
    assert full.model_version == "1"
    shadow = plane.registry.find("lm", "2").statistics.shadow
    assert shadow is not None
    await until(lambda: sum(shadow.outcomes.values()) == 3)
    assert {outcome.value: count for outcome, count in shadow.outcomes.items() if count} == {
        "equal": 2,
        "uncompared": 1,
    }
    assert shadow.obstacles[Obstacle.SAMPLED] == 1

"""A language model behind the data plane, decoupled or not, in a process or a thread."""

import asyncio
from pathlib import Path

import pytest
from tests.runtime.backends.language_model import output, pbtxt, request, save_model
from tests.runtime.service.conftest import Repository, Serve, infer, responses, single_response

from argosy_runtime.errors import DecoupledModelError

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

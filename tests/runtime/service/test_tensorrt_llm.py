"""TensorRT-LLM's backend behind the data plane, in a process of its own, with the stand-in for TensorRT-LLM."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import tests.builder.tensorrt_llm
from tests.runtime.backends.language_model import output, text_request
from tests.runtime.backends.tensorrtllm.conftest import pbtxt, write_engine
from tests.runtime.service.conftest import Repository, Serve, responses

from argosy_runtime.errors import ServingError

STANDINS = Path(tests.builder.tensorrt_llm.__path__[0]) / "standins"


@pytest.fixture
def standin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install the stand-in for the server, and for the processes that it starts. Yield the file of its calls."""
    monkeypatch.syspath_prepend(str(STANDINS))
    monkeypatch.setenv("PYTHONPATH", str(STANDINS))
    monkeypatch.setenv("STANDIN_CALLS", str(tmp_path / "calls"))
    monkeypatch.delitem(sys.modules, "tensorrt_llm", raising=False)  # another test of this process may have imported it
    yield tmp_path / "calls"
    assert "tensorrt_llm" not in sys.modules, "the server itself never imports it"


def called(file: Path) -> list[str]:
    """Return the names of the calls."""
    return [json.loads(line)["call"] for line in file.read_text().splitlines()]


async def test_an_engine_answers_in_a_process_of_its_own(
    repository: Repository, serve: Serve, standin: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "engine"
    folder.mkdir()
    write_engine(folder)
    files = {f"1/{path.relative_to(folder)}": path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    repository.write("lm", files, pbtxt())
    plane = await serve(load_timeout=120.0)
    await plane.load("lm", None, {})
    request = text_request("w10", {"max_tokens": 3}, stream=True)
    parts = [output(part, "text_output")[0] async for part in responses(plane, request)]
    assert b"".join(parts) == b"w11 w12 w13"
    assert called(standin)[:2] == ["LLM", "generate_async"]
    config = json.loads(files["1/config.json"]) | {"version": "1.0.0"}
    repository.write("lm", {**files, "1/config.json": json.dumps(config).encode()}, pbtxt())
    with pytest.raises(ServingError, match=r"was built by TensorRT-LLM 1\.0\.0, and only that release opens it"):
        await plane.load("lm", None, {})

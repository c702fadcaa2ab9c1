"""Traces over whole models: of requests that the cache answers, and of refused ones."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.runtime.service.conftest import ask, infer
from tests.runtime.service.test_response_cache import CACHED, COUNTING

from argosy_runtime.dataplane import DataPlane
from argosy_runtime.errors import ServingError
from argosy_runtime.repository.options import OnDemandOptions
from argosy_runtime.telemetry.tracing.options import TraceOptions
from argosy_runtime.traces import TraceLevel


def tracing(folder: Path) -> TraceOptions:
    """Return options that trace every request into `folder`."""
    return TraceOptions(TraceLevel.TIMESTAMPS, rate=1, file=str(folder / "trace.json"))


@pytest.fixture
async def plane(repository, serve, tmp_path: Path) -> DataPlane:
    """Return a data plane that traces every request, with the model `m`, whose answers are cached."""
    repository.add("m", config=CACHED, **COUNTING)
    served = await serve(tracing=tracing(tmp_path), cache_bytes=1 << 20)
    await served.load("m", None, {})
    return served


def names(plane: DataPlane, tmp_path: Path) -> list[list[str]]:
    """End the traces, and return the names of their times by id."""
    plane.tracer.close(10)
    traces: dict[int, list[str]] = {}
    for entry in json.loads((tmp_path / "trace.json").read_text()):
        traces.setdefault(entry["id"], []).extend(time["name"] for time in entry.get("timestamps", ()))
    return [traces[number] for number in sorted(traces)]


async def test_a_request_that_the_cache_answers_has_no_execution(plane: DataPlane, tmp_path: Path) -> None:
    await infer(plane, ask("m", 1))
    await infer(plane, ask("m", 1))
    ran, hit = await asyncio.to_thread(names, plane, tmp_path)
    assert [name for name in ran if name.startswith("COMPUTE")] != []
    assert hit == ["REQUEST_START", "QUEUE_START", "INFER_RESPONSE_COMPLETE", "REQUEST_END"]


async def test_a_refused_request_leaves_nothing_open(plane: DataPlane) -> None:
    wrong = ask("m", 1)
    wrong.inputs = {}
    with pytest.raises(ServingError):
        await infer(plane, wrong)
    assert wrong.trace is None
    assert plane.tracer.active


async def test_requests_that_wait_for_their_models_are_traced(repository, serve, tmp_path: Path) -> None:
    call = """
    response = pb_utils.InferenceRequest(
        model_name="inner", requested_output_names=["Y"], inputs=[pb_utils.Tensor("X", x)], trace=request.trace()
    ).exec()
    y = pb_utils.get_output_tensor_by_name(response, "Y").as_numpy()
    """
    repository.add("inner")
    repository.add("outer", execute=call)
    plane = await serve(tracing=tracing(tmp_path), on_demand=OnDemandOptions(0, 30.0))
    await infer(plane, ask("outer", 1))
    await asyncio.to_thread(names, plane, tmp_path)
    trace_file = tmp_path / "trace.json"
    models = {entry["id"]: entry for entry in json.loads(trace_file.read_text()) if entry.get("model_name")}
    (outer,) = [entry for entry in models.values() if entry["model_name"] == "outer"]
    (inner,) = [entry for entry in models.values() if entry["model_name"] == "inner"]
    assert inner["parent_id"] == outer["id"]

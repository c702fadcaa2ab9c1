"""The index, the log and the metrics report models that do less than their configuration says, or fail."""

import pytest
from tests.runtime.service.conftest import CONFIG, ask, infer, reason, states
from tests.runtime.service.test_lifecycle import ENSEMBLE

from argosy_runtime.errors import ServingError

IGNORED = {
    "instance_group [ { count: 1 kind: KIND_CPU rate_limiter { priority: 2 } } ]": "instance_group.rate_limiter",
    "response_cache { enable: true }": "response_cache",
    'model_metrics { metric_control [ { metric_identifier { family: "nv_inference_count" } '
    "histogram_options { buckets: [ 1, 2 ] } } ] }": "model_metrics of families without buckets of their own",
    "optimization { cuda { graphs: true } }": "optimization.cuda.graphs",
    "optimization { cuda { busy_wait_events: true } }": "optimization.cuda.busy_wait_events",
    "optimization { cuda { output_copy_stream: true } }": "optimization.cuda.output_copy_stream",
    "optimization { gather_kernel_buffer_threshold: 4 }": "optimization.gather_kernel_buffer_threshold",
    "optimization { eager_batching: true }": "optimization.eager_batching",
}


@pytest.mark.parametrize(("text", "setting"), IGNORED.items(), ids=IGNORED.values())
async def test_a_setting_without_effect_is_reported(repository, serve, caplog, text, setting):
    repository.add("m", config=CONFIG + text)
    repository.add("plain")
    plane = await serve()
    for name in ("m", "plain"):
        await plane.load(name, None, {})
    assert await states(plane) == {"m:1": "READY", "plain:1": "READY"}
    assert await reason(plane, "m") == f"{setting} has no effect on this server"
    assert await reason(plane, "plain") == ""
    assert f"model 'm': {setting} has no effect on this server" in caplog.text
    (repository.path / "m/config.pbtxt").write_text(CONFIG)
    await plane.load("m", None, {})
    assert await reason(plane, "m") == ""


async def test_an_ensemble_tells_too(repository, serve):
    for name in "ab":
        repository.add(name)
    repository.write("e", {"1/.keep": ""}, ENSEMBLE + "response_cache { enable: true }")
    plane = await serve()
    await plane.load("e", None, {})
    assert await reason(plane, "e") == "response_cache has no effect on this server"


async def test_the_index_is_the_same_message_while_it_tells_the_same(repository, serve):
    repository.add("m")
    plane = await serve()
    before = await plane.index(ready_only=False)
    assert await plane.index(ready_only=False) is before
    await plane.load("m", None, {})
    after = await plane.index(ready_only=False)
    assert after is not before
    assert [model.state for model in after.models] == ["READY"]
    assert await plane.index(ready_only=True) == after
    await plane.unload("m", False)
    assert not (await plane.index(ready_only=True)).models


async def metric(plane, name: str) -> dict[str, float]:
    """Return a family's samples by labels."""
    lines = b"".join([piece async for piece in plane.metrics()]).decode().splitlines()
    samples = [line.removeprefix(name) for line in lines if line.startswith(name + "{")]
    return {labels: float(value) for labels, value in (sample.rsplit(" ", 1) for sample in samples)}


async def test_a_model_that_cannot_be_loaded_has_its_series(repository, serve):
    repository.add("m", initialize="raise ValueError('no weights')")
    plane = await serve()
    for _ in range(2):
        with pytest.raises(ServingError):
            await plane.load("m", None, {})
    assert await metric(plane, "argosy_model_load_failure_count") == {'{model="m",version="1"}': 2}
    failures = await metric(plane, "nv_inference_request_failure")
    reasons = ("REJECTED", "CANCELED", "BACKEND", "OTHER")
    assert failures == {f'{{model="m",version="1",reason="{reason}"}}': 0 for reason in reasons}
    repository.add("m")
    await plane.load("m", None, {})
    assert await metric(plane, "argosy_model_load_failure_count") == {'{model="m",version="1"}': 2}


async def test_a_model_that_was_lost_and_its_ensemble_keep_their_series(repository, serve):
    marker = repository.path.parent / "once"
    code = f"""
    if os.path.exists({str(marker)!r}):
        raise ValueError('not again')
    open({str(marker)!r}, 'w').close()
    """
    repository.add("a", initialize=code, execute="os._exit(1)")
    repository.add("b")
    repository.write("e", {"1/.keep": ""}, ENSEMBLE)
    plane = await serve()
    await plane.load("e", None, {})
    with pytest.raises(ServingError, match="exited with code 1"):
        await infer(plane, ask("e"))
    with pytest.raises(ServingError, match="not again"):
        await infer(plane, ask("a"))
    assert not plane.model_ready("e", "")
    failures = await metric(plane, "nv_inference_request_failure")
    assert sum(value for labels, value in failures.items() if 'model="e"' in labels) == 1
    assert sum(value for labels, value in failures.items() if 'model="a"' in labels) == 2

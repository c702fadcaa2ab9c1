"""The rate limiter over whole models: sequences, changes in place, restarts, loads that are refused, unloads."""

import asyncio

import pytest
from tests.runtime.service.conftest import CONFIG, ask, infer, value
from tests.waiting import until

from argosy_runtime.errors import ServingError
from argosy_runtime.scheduling.limits.resources import ResourceLimit

LIMITS = (ResourceLimit("R", 1),)


def limited(count: int = 1, amount: int = 1, more: str = "dynamic_batching { }") -> str:
    """Return a configuration of instances that take so much of R."""
    resources = f'rate_limiter {{ resources [ {{ name: "R" count: {amount} }} ] }}'
    group = f"instance_group [ {{ kind: KIND_CPU count: {count} {resources} }} ]"
    return CONFIG.replace("dynamic_batching { }", more) + group


async def test_sequences_on_two_instances_take_turns_with_one_resource(repository, serve):
    sequences = "sequence_batching { direct { } control_input [ ] }"
    config = limited(2, more=sequences).replace("max_batch_size: 8", "max_batch_size: 1")
    repository.add("m", config=config)
    plane = await serve(rate_limits=LIMITS)
    await plane.load("m", None, {})
    for sequence in (1, 2):
        assert await infer(plane, ask("m", 1, sequence_id=sequence, sequence_start=True))
    for _ in range(3):
        async with asyncio.timeout(60):
            assert await infer(plane, ask("m", 1, sequence_id=2))
    both = [infer(plane, ask("m", 1, sequence_id=sequence, sequence_end=True)) for sequence in (1, 2)]
    async with asyncio.timeout(60):
        assert len(await asyncio.gather(*both)) == 2


async def test_a_change_of_instances_follows_unless_one_could_never_run(repository, serve):
    repository.add("m", config=limited())
    plane = await serve(rate_limits=LIMITS)
    await plane.load("m", None, {})
    (repository.path / "m/config.pbtxt").write_text(limited(2))
    await plane.load("m", None, {})
    assert [await value(plane, "m", x) for x in (1, 2, 3)] == [1, 2, 3]
    (repository.path / "m/config.pbtxt").write_text(limited(1, amount=2))
    with pytest.raises(ServingError, match='Resource count for "R" is limited to 1'):
        await plane.load("m", None, {})
    assert await value(plane, "m", 4) == 4
    (repository.path / "m/config.pbtxt").write_text(limited(1))
    await plane.load("m", None, {})
    assert await value(plane, "m", 5) == 5


async def test_an_instance_that_is_restarted_goes_on_in_turn(repository, serve):
    repository.add("m", "pass", "x[0, 0] != 7 or os._exit(1)", config=limited())
    repository.add("n", config=limited())
    plane = await serve(rate_limits=LIMITS)
    for name in "mn":
        await plane.load(name, None, {})
    with pytest.raises(ServingError):
        await value(plane, "m", 7)
    async with asyncio.timeout(60):
        assert await value(plane, "n", 2) == 2
        assert await value(plane, "m", 3) == 3


async def test_an_unloaded_model_leaves_its_resources(repository, serve, gate):
    repository.add("m", "pass", gate.code, config=limited())
    repository.add("n", config=limited())
    plane = await serve(rate_limits=LIMITS)
    for name in "mn":
        await plane.load(name, None, {})
    running = asyncio.ensure_future(value(plane, "m", 1))
    await gate.reached()
    waiting = asyncio.ensure_future(value(plane, "n", 2))
    await plane.unload("m", False)
    await asyncio.sleep(0.05)
    assert not waiting.done()
    gate.open()
    assert (await running, await waiting) == (1, 2)
    limiter = plane.registry.records["n"].prepared.versions[1].features.rate_limiter
    await until(lambda: len(limiter._resources._declared) == 1)


async def test_a_failed_load_leaves_nothing(repository, serve):
    repository.add("m", "raise ValueError('no')", config=limited())
    repository.add("n", config=limited())
    plane = await serve(rate_limits=())
    with pytest.raises(ServingError):
        await plane.load("m", None, {})
    await plane.load("n", None, {})
    assert await value(plane, "n", 1) == 1
    limiter = plane.registry.records["n"].prepared.versions[1].features.rate_limiter
    assert len(limiter._resources._declared) == 1


@pytest.mark.parametrize(
    "settings",
    [
        (
            'dynamic_batching { } model_warmup [ { name: "w" batch_size: 1 inputs { key: "X" value: '
            '{ data_type: TYPE_FP32 dims: [ 1 ] input_data_file: "missing" } } } ]'
        ),
        (
            'sequence_batching { state [ { input_name: "S" output_name: "T" data_type: TYPE_FP32 dims: [ 1 ] '
            'initial_state: { name: "s" data_type: TYPE_FP32 dims: [ 1 ] data_file: "missing" } } ] }'
        ),
        'dynamic_batching { } parameters { key: "BATCH_STRATEGY" value: { string_value: "missing.py" } }',
    ],
    ids=["warm-up", "initial state", "batch strategy"],
)
async def test_a_load_that_fails_before_its_instances_leaves_nothing(repository, serve, settings):
    repository.add("m", config=limited(2, amount=5, more=settings))
    repository.add("n", config=limited(amount=2))
    plane = await serve(rate_limits=())
    await plane.load("n", None, {})
    limiter = plane.registry.records["n"].prepared.versions[1].features.rate_limiter
    with pytest.raises(ServingError, match="missing"):
        await plane.load("m", None, {})
    assert len(limiter._resources._declared) == 1
    (repository.path / "m/config.pbtxt").write_text(limited(amount=2))
    await plane.load("m", None, {})
    assert len(limiter._resources._declared) == 2
    assert await value(plane, "m", 1) == 1

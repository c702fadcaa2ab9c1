"""The memory of a version's processes: only of instances that were loaded all the while it was measured."""

from collections.abc import Iterable
from datetime import UTC, datetime

from argosy.autoscaling.metrics.pool_signals import pool_signals
from argosy.autoscaling.metrics.signals import MemorySignals
from argosy.autoscaling.metrics.windows import Exposed, ServerWindow
from argosy.signals.samples import Sample, exposed

NOW = datetime(2030, 1, 1, tzinfo=UTC)
MIB = 2.0**20


def reading(
    at: float,
    measured: float,
    gpus: Iterable[float] = (100,),
    instances: float | None = 2,
    lost: float = 0,
    version: int = 1,
) -> Exposed:
    """Return a reading of a server that measured its model's memory at `measured` seconds: MiB by GPU."""
    labels = {"model": "m", "version": str(version)}
    samples = [
        Sample("argosy_model_memory_bytes", {**labels, "type": "CPU", "device": "0"}, 30 * MIB),
        *(
            Sample("argosy_model_memory_bytes", {**labels, "type": "GPU", "device": str(gpu)}, size * MIB)
            for gpu, size in enumerate(gpus)
        ),
        Sample("argosy_model_memory_time_seconds", labels, measured),
        Sample("argosy_instances_lost_total", labels, lost),
    ]
    if instances is not None:
        samples.append(Sample("argosy_instances", labels, instances))
    return exposed(samples, at)


def memory(*servers: Iterable[Exposed]) -> tuple[MemorySignals, ...]:
    windows = {}
    for index, readings in enumerate(servers):
        window = ServerWindow()
        for one in readings:
            window = window.after(one)
        windows[f"s-{index}"] = window
    latest = max(window.latest.at for window in windows.values())
    members = pool_signals({name: {"m": "m"} for name in windows}, windows, latest, NOW).members
    return members["m"].memory if "m" in members else ()


def test_a_new_measurement_of_settled_instances_counts() -> None:
    assert memory([reading(0, 1000), reading(5, 1015)]) == (MemorySignals(1, "s-0", 2, 30 * MIB, 100 * MIB),)


def test_of_several_gpus_the_one_with_the_most_counts() -> None:
    (of_two,) = memory([reading(0, 1000), reading(5, 1015, gpus=(70, 90))])
    assert of_two.gpu == 90 * MIB
    (of_none,) = memory([reading(0, 1000), reading(5, 1015, gpus=())])
    assert of_none.gpu is None


def test_of_several_servers_the_one_with_the_most_counts() -> None:
    (largest,) = memory(*([reading(0, 1000), reading(5, 1015, gpus=(size,))] for size in (80, 120, 90)))
    assert (largest.server, largest.gpu) == ("s-1", 120 * MIB)


def test_versions_are_apart() -> None:
    one, two = reading(5, 1015), reading(5, 1015, gpus=(300,), version=2)
    before = Exposed(0, {**reading(0, 1000).models, **reading(0, 1000, version=2).models})
    both = memory([before, Exposed(5, {**one.models, **two.models})])
    assert [(item.version, item.gpu) for item in both] == [(1, 100 * MIB), (2, 300 * MIB)]


def test_an_old_measurement_is_none() -> None:
    assert memory([reading(0, 1000), reading(5, 1000)]) == ()


def test_of_instances_that_come_go_or_crash_there_is_none() -> None:
    assert memory([reading(0, 1000, instances=1), reading(5, 1015, instances=2)]) == ()
    assert memory([reading(0, 1000, instances=2), reading(5, 1015, instances=1)]) == ()
    assert memory([reading(0, 1000), reading(5, 1015, lost=1)]) == ()
    assert memory([reading(0, 1000, instances=0), reading(5, 1015, instances=0)]) == ()


def test_a_server_on_which_an_instance_was_lost_is_named() -> None:
    window = ServerWindow().after(reading(0, 1000)).after(reading(5, 1015, lost=1))
    members = pool_signals({"s-0": {"m": "m"}}, {"s-0": window}, window.latest.at, NOW).members
    assert members["m"].crashed == ("s-0",)


def test_of_a_version_that_has_just_come_there_is_none() -> None:
    assert memory([Exposed(0), reading(5, 1015)]) == ()


def test_of_a_server_that_does_not_say_how_many_instances_it_has_there_is_none() -> None:
    assert memory([reading(0, 1000, instances=None), reading(5, 1015, instances=None)]) == ()

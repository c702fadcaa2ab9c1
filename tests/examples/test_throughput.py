"""examples/throughput: the load generator's arithmetic, and that each step of the tutorial is a valid manifest."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from argosy.api import parse_documents

EXAMPLE = Path(__file__).parents[2] / "examples" / "throughput"
TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorials" / "from-50-to-800.md"
TEXT = (EXAMPLE / "models.yaml").read_text()
STEPS = sorted(set(re.findall(r"# step (\d): ", TEXT)))


@pytest.fixture(scope="module")
def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("throughput_load", EXAMPLE / "load.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def with_steps(last: int) -> str:
    return re.sub(rf"# step [2-{last}]: ", "", TEXT) if last >= 2 else TEXT


@pytest.mark.parametrize("last", range(1, 6))
def test_the_manifest_is_valid_after_every_step(last: int) -> None:
    resources, problems = parse_documents(with_steps(last), "models.yaml")
    assert problems == []
    assert len(resources) == 5
    assert len(re.findall(r"# step \d: ", with_steps(last))) == len(STEPS) - (last - 1)


def test_the_tutorial_turns_on_every_step_in_its_order() -> None:
    assert re.findall(r"sed -i 's/# step (\d): //'", TUTORIAL.read_text()) == STEPS == ["2", "3", "4", "5"]


def test_the_steps_are_batching_instances_and_warm_up() -> None:
    def spec(last: int, name: str) -> dict[str, object]:
        return next(d["spec"] for d in yaml.safe_load_all(with_steps(last)) if d["metadata"]["name"] == name)

    assert "batching" not in spec(1, "encode")
    assert spec(2, "encode")["batching"] == {"maxQueueDelayMicroseconds": 2000}
    assert spec(3, "tokenize")["instances"] == spec(4, "encode")["instances"] == 2
    assert "model_warmup" in spec(5, "encode")["config"]


@given(st.lists(st.floats(0, 1000), min_size=1), st.floats(0.001, 1))
def test_a_percentile_is_the_least_value_that_enough_values_do_not_exceed(
    load: ModuleType, values: list[float], share: float
) -> None:
    share = round(share, 3)
    percentile = load.percentile(values, share)
    needed = share * len(values)
    assert percentile in values
    assert sum(value <= percentile for value in values) >= needed - 1e-9
    assert sum(value < percentile for value in values) < needed + 1e-9


def test_a_report_names_the_rate_the_latencies_and_failures(load: ModuleType) -> None:
    result = load.Load([0.010] * 98 + [0.020, 0.050], [])
    assert result.report(4, 2.0) == "4 clients: 50 requests/s, p50 10 ms, p99 20 ms, slowest 50 ms"
    result.errors.append("unavailable")
    assert result.report(4, 2.0).endswith("slowest 50 ms, 1 failed")


def test_nothing_answered_is_a_rate_of_zero(load: ModuleType) -> None:
    assert load.Load().report(1, 2.0) == "1 clients: 0 requests/s, p50 0 ms, p99 0 ms, slowest 0 ms"

"""The Job of a profile: golden, restricted, on the right nodes, and nothing that the operator would remove."""

import json
import os
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import model, pool
from tests.operator.render.workloads.cases import as_text
from tests.operator.render.workloads.restricted import broken
from tests.properties import examples

from argosy.api.values.capability import CapabilityRange
from argosy.planning.requirements import NodeRequirements
from argosy.render.names import LONGEST, profile_name
from argosy.render.workloads.metadata import managed_selector
from argosy.render.workloads.profiling import ProfileJob, capability_terms, profile_job

EXPECTED = Path(__file__).parent / "profile_data"
TEMPLATE = {
    "spec": {
        "containers": [{"name": "server", "env": [{"name": "OMP_NUM_THREADS", "value": "4"}]}],
        "priorityClassName": "servers",
    }
}
POOL = pool(
    nodeSelector={"team": "vision"},
    tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}],
    storage={"secretName": "bucket", "serviceAccountName": "reader"},
    runtime={"podTemplate": TEMPLATE},
)
URI = "pvc://weights/m/1"
GPU = ProfileJob(
    model=model("m", storageUri=URI, storage={"secretName": "own"}),
    pool=POOL,
    namespace="default",
    image="argosy-runtime:1-cuda",
    variable="ARGOSY_PROFILE",
    request=json.dumps({"storageUri": URI}, separators=(",", ":")),
    gpus=1,
    requires=NodeRequirements((("disk", "ssd"),), frozenset({"NVIDIA-L4"}), CapabilityRange.parse(">= 8.9")),
    deadline_s=3600,
)
CPU = replace(
    GPU, model=model("m", memory=0), pool=pool(), gpus=0, requires=NodeRequirements(), image="argosy-runtime:1"
)


@pytest.mark.parametrize(("name", "job"), [("gpu", GPU), ("cpu", CPU)])
def test_golden(name: str, job: ProfileJob) -> None:
    text, expected = as_text([profile_job(job)]), EXPECTED / f"{name}.yaml"
    if os.environ.get("ARGOSY_UPDATE_GOLDEN"):
        expected.parent.mkdir(exist_ok=True)
        expected.write_text(text)
    assert text == expected.read_text()


@pytest.mark.parametrize("job", [GPU, CPU])
def test_the_pod_is_restricted(job: ProfileJob) -> None:
    assert broken(profile_job(job)["spec"]["template"]["spec"]) == []


def test_the_operator_does_not_take_it_for_its_own() -> None:
    body = profile_job(GPU)
    selected = dict(pair.split("=") for pair in managed_selector().split(","))
    for labels in (body["metadata"]["labels"], body["spec"]["template"]["metadata"]["labels"]):
        assert not selected.items() <= labels.items()


def test_names_are_short_enough_for_the_pod() -> None:
    for name in ("m", "m" * 43, "m" * 44, "m" * 253):
        assert len(profile_name(name)) + len("abcde") + len("-abcde") <= LONGEST


numbers = st.tuples(st.sampled_from([">=", "<=", ">", "<", "=="]), st.integers(5, 13), st.integers(0, 9))


@given(st.lists(numbers, max_size=2))
@examples(100)
def test_labels_select_what_the_range_accepts(terms: list[tuple[str, int, int]]) -> None:
    capability = CapabilityRange(tuple((sign, (major, minor)) for sign, major, minor in terms))
    alternatives = capability_terms(capability)
    for major, minor in product(range(1, 20), range(10)):
        labels = {"nvidia.com/gpu.compute.major": major, "nvidia.com/gpu.compute.minor": minor}
        selected = any(all(_holds(one, labels) for one in every) for every in alternatives)
        assert selected == capability.accepts(f"{major}.{minor}")


def _holds(expression: Any, labels: dict[str, int]) -> bool:
    value, values = labels[expression["key"]], expression["values"]
    return value > int(values[0]) if expression["operator"] == "Gt" else str(value) in values

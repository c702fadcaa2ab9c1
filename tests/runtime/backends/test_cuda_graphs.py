"""Batches run as graphs with the same answers. The capture is a fake: it calls the model again."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from google.protobuf import text_format
from torch.utils import _pytree as pytree
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.contract import InstanceSpec
from argosy_runtime.backends.pytorch import graphs
from argosy_runtime.backends.pytorch.buckets import Bucket, buckets
from argosy_runtime.backends.pytorch.graphs import Graphs
from argosy_runtime.errors import ServingError


def config(cuda: str, dims: str = "[ 3 ]", batch: int = 8, extra: str = "") -> ModelConfig:
    text = f"""name: "m" backend: "pytorch" max_batch_size: {batch} optimization {{ cuda {{ {cuda} }} }}
        input {{ name: "A" data_type: TYPE_FP32 dims: {dims} }} {extra}"""
    return text_format.Parse(text, ModelConfig())


def ranges(result: list[Bucket]) -> list[tuple[int, int]]:
    return [(bucket.smallest, bucket.rows) for bucket in result]


@pytest.mark.parametrize(
    ("batch", "extra", "expected"),
    [
        (1, "", [(1, 1)]),
        (8, "", [(1, 1), (2, 2), (3, 4), (5, 8)]),
        (12, "", [(1, 1), (2, 2), (3, 4), (5, 8), (9, 12)]),
        (8, "dynamic_batching { preferred_batch_size: [ 6, 99 ] }", [(1, 1), (2, 2), (3, 4), (5, 6), (7, 8)]),
        (0, "", [(0, 0)]),
    ],
)
def test_the_default_covers_every_batch(batch: int, extra: str, expected: list[tuple[int, int]]) -> None:
    result = buckets(config("graphs: true", batch=batch, extra=extra))
    assert ranges(result) == expected
    assert all(bucket.shapes == {"A": (3,)} for bucket in result)


def test_no_graphs_unless_requested_and_none_of_shapes_that_vary() -> None:
    assert buckets(config("graphs: false")) == []
    assert buckets(config("graphs: true", dims="[ -1 ]")) == []


def test_a_graph_spec_decides() -> None:
    result = buckets(
        config(
            """graphs: true
            graph_spec { batch_size: 8 input { key: "A" value { dim: [ 5 ] } } graph_lower_bound { batch_size: 3 } }
            graph_spec { batch_size: 2 input { key: "A" value { dim: [ 4 ] } } }""",
            dims="[ -1 ]",
        )
    )
    assert ranges(result) == [(2, 2), (3, 8)], "no padding that is not allowed"
    assert [bucket.shapes["A"] for bucket in result] == [(4,), (5,)]


@pytest.mark.parametrize(
    ("cuda", "dims", "expected"),
    [
        ("graph_spec { batch_size: 9 }", "[ 3 ]", "graph_spec has batch_size 9, and max_batch_size is 8"),
        ("graph_spec { batch_size: 0 }", "[ 3 ]", "graph_spec has batch_size 0, and max_batch_size is 8"),
        ("graph_spec { batch_size: 2 }", "[ -1 ]", r"input 'A': its shape \[-1\] varies; say for which one"),
        (
            'graph_spec { batch_size: 2 graph_lower_bound { batch_size: 1 input { key: "A" value { dim: [ 1 ] } } } }',
            "[ 3 ]",
            r"graph_lower_bound may lower the batch size alone, not the shape \[3\]",
        ),
    ],
)
def test_a_specification_that_cannot_be_is_named(cuda: str, dims: str, expected: str) -> None:
    with pytest.raises(ServingError, match=expected):
        buckets(config(f"graphs: true {cuda}", dims))


class Recorder:
    """A capture: `captured` has the rows of each, `replayed` those that were replayed, `refuse` makes it fail."""

    def __init__(self) -> None:
        self.captured: list[int] = []
        self.replayed: list[list[list[float]]] = []
        self.refuse = False

    def __call__(self, call: Callable[..., Any], inputs: Mapping[str, torch.Tensor]) -> tuple[Any, Callable[[], None]]:
        if self.refuse:
            raise RuntimeError("operation not permitted when stream is capturing")
        result = call(inputs)
        self.captured.append(inputs["A"].shape[0])

        def replay() -> None:
            self.replayed.append(inputs["A"].tolist())
            pytree.tree_map(lambda old, new: old.copy_(new), result, call(inputs))

        return result, replay


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def twice(inputs: Mapping[str, Any]) -> Any:
    return {"out": inputs["A"] * 2, "sum": inputs["A"].sum()}


def of(recorder: Recorder, host: Any, call: Any = twice, model_config: ModelConfig | None = None) -> Graphs:
    model_config = model_config or config("graphs: true")
    return Graphs(call, buckets(model_config), model_config.max_batch_size > 0, recorder, host, "m_0")


def rows(count: int, value: float = 1.0) -> dict[str, torch.Tensor]:
    return {"A": torch.full((count, 3), value)}


def test_a_batch_is_padded_to_its_bucket_and_gets_its_own_rows(recorder: Recorder, host: Any) -> None:
    run = of(recorder, host)
    first = run(rows(5, 7.0))
    second = run(rows(3, 1.0))
    third = run(rows(6, 2.0))
    assert recorder.captured == [8, 4], "each bucket once, when it is first met"
    assert first["out"].tolist() == [[14.0] * 3] * 5, "and it is not what a later batch wrote there"
    assert second["out"].tolist() == [[2.0] * 3] * 3
    assert third["out"].tolist() == [[4.0] * 3] * 6
    assert recorder.replayed[2] == [[2.0] * 3] * 6 + [[0.0] * 3] * 2, "nothing of the batch before"
    assert third["sum"].item() == 36.0, "what has no rows is whole"


def test_other_shapes_run_without(recorder: Recorder, host: Any) -> None:
    run = of(recorder, host)
    assert run({"A": torch.ones(2, 4)})["out"].shape == (2, 4)
    assert run({"A": torch.ones(2, 3), "B": torch.ones(2, 3)})["out"].shape == (2, 3)
    assert of(recorder, host, lambda inputs: inputs["A"])({"A": ["text"]}) == ["text"]
    assert recorder.captured == []


def test_a_model_without_a_batch(recorder: Recorder, host: Any) -> None:
    run = of(recorder, host, model_config=config("graphs: true", batch=0))
    assert run({"A": torch.ones(3)})["out"].tolist() == [2.0] * 3
    assert run({"A": torch.full((3,), 2.0)})["out"].tolist() == [4.0] * 3
    assert recorder.captured == [3]


def test_what_cannot_be_captured_runs_without_and_says_so_once(recorder: Recorder, host: Any) -> None:
    recorder.refuse = True
    run = of(recorder, host)
    for value in (1.0, 2.0):
        assert run(rows(3, value))["out"].tolist() == [[2 * value] * 3] * 3
    ((level, line),) = host.lines
    assert level == "warning"
    assert line == (
        "model instance 'm_0': batches of 3 to 4 run without a CUDA graph, which could not be captured: "
        "operation not permitted when stream is capturing"
    )


def test_results_that_are_no_tensors_are_not_captured(recorder: Recorder, host: Any) -> None:
    run = of(recorder, host, lambda inputs: {"out": inputs["A"], "text": ["a"]})
    assert run(rows(1))["text"] == ["a"]
    assert "the model returns str among its tensors" in host.lines[0][1]


def test_graphs_need_a_gpu_and_fixed_shapes(model_folder: Any, host: Any) -> None:
    cpu = torch.device("cpu")
    for model_config in (config("graphs: true"), config("graphs: true", dims="[ -1 ]")):
        spec = InstanceSpec(model_config, 1, model_folder, model_folder, "m_0", "KIND_CPU", 0)
        assert graphs.with_graphs(spec, twice, cpu, host) is twice
    assert [line for _, line in host.lines] == [
        "model instance 'm_0' has no CUDA graphs: it is not on a GPU of its own",
        "model instance 'm_0' has no CUDA graphs: its inputs' shapes vary; give each that counts a graph_spec",
    ]

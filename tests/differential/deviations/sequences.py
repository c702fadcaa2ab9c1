"""Answers of Argosy that differ from Triton's on purpose: sequences, and what is counted of them."""

from typing import Any

from tests.differential.deviations.case import Deviation

NOT_BEGUN = (
    "inference request for sequence 303 to model 'sequence_sum' must specify the START flag on the first request of "
    "the sequence"
)
_TYPE = "the type of a correlation id"
_COUNTS = "counts of requests"


def _misfit(model: str) -> list[Any]:
    text = f"sequence batching control 'CORRID' data-type is 'BYTES', but model '{model}' expects 'UINT64'"
    return [{"status": 400, "type": "<error>", "body": {"error": f"[request id: <id_unknown>] {text}"}}]


def _answered(model: str, output: str, datatype: str, shape: list[int], *values: Any) -> list[Any]:
    outputs = [{"name": output, "datatype": datatype, "shape": shape}]
    body = {"model_name": model, "model_version": "1"}
    return [
        {
            "status": 200,
            "type": "application/json",
            "body": {**body, "outputs": [{**output, "data": [value]} for output in outputs]},
        }
        for value in values
    ]


def _moved(model: str, batches: dict[int, int], **counts: int) -> dict[str, int]:
    stages = ("compute_infer", "compute_input", "compute_output")
    moved = {f"{model}/1/batch_stats/{size}/{stage}": count for size, count in batches.items() for stage in stages}
    moved |= {f"{model}/1/{name}": counts[name] for name in ("execution_count", "inference_count")}
    answered = dict.fromkeys((*stages, "queue", "success"), counts["inference_count"])
    return moved | {f"{model}/1/inference_stats/{name}": count for name, count in answered.items()}


SEQUENCES: dict[tuple[str, str], Deviation] = {
    ("grpc", "stream sequence never begun, as status"): Deviation(
        "errors that end a stream",
        {"code": "INVALID_ARGUMENT", "details": NOT_BEGUN, "messages": []},
    ),
    ("http_infer", "sequence of one, text id"): Deviation(_TYPE, _misfit("sequence_sum")),
    ("http_sequences", "empty id"): Deviation(_TYPE, _misfit("sequence_sum")),
    ("http_sequences", "text ids"): Deviation(
        "the length of a text id",
        _answered("sequence_text", "OUT", "BYTES", [1], "one:a", "two:b", "one:c", "two:d"),
    ),
    ("http_sequences", "state"): Deviation(
        "implicit state of Python models",
        _answered("sequence_state", "OUT", "INT32", [1, 1], 101, 103, 106),
    ),
    ("statistics", "sequence by slots"): Deviation(
        _COUNTS,
        _moved("sequence_slots", {1: 6}, execution_count=6, inference_count=6),
    ),
    ("statistics", "scheduled again"): Deviation(
        _COUNTS, _moved("countdown", {1: 4}, execution_count=4, inference_count=2)
    ),
    ("metrics", "scheduled again"): Deviation(
        _COUNTS,
        {
            "nv_inference_count model=countdown,version=1": 2,
            "nv_inference_exec_count model=countdown,version=1": 4,
            "nv_inference_request_success model=countdown,version=1": 2,
        },
    ),
}

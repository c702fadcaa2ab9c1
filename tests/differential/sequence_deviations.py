"""Deliberate differences from Triton in sequences, as `deviations` has them."""

from typing import Any

NOT_BEGUN = (
    "inference request for sequence 303 to model 'sequence_sum' must specify the START flag on the first request of "
    "the sequence"
)
_TYPE = "as in Triton from 25.01 on, an id must be of its control's type: the model would read another one"
_SLOTS = "a slot without a request is no row of the batch"
_ONCE = "a request counts once, however often it is scheduled"


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


DEVIATIONS: dict[tuple[str, str], tuple[str, Any]] = {
    ("grpc", "stream sequence never begun, as status"): (
        "Triton closes a stream with a status only for errors of execution, not for those before it",
        {"code": "INVALID_ARGUMENT", "details": NOT_BEGUN, "messages": []},
    ),
    ("http_infer", "sequence of one, text id"): (_TYPE, _misfit("sequence_sum")),
    ("http_sequences", "empty id"): (_TYPE, _misfit("sequence_sum")),
    ("http_sequences", "text ids"): (
        "as in Triton from 25.01 on, a text id has its own length; 2.51 gives the model 128 bytes of it",
        _answered("sequence_text", "OUT", "BYTES", [1], "one:a", "two:b", "one:c", "two:d"),
    ),
    ("http_sequences", "state"): (
        "Triton's Python models cannot return a state, so theirs stays the initial one",
        _answered("sequence_state", "OUT", "INT32", [1, 1], 101, 103, 106),
    ),
    ("statistics", "sequence by slots"): (
        _SLOTS,
        _moved("sequence_slots", {1: 6}, execution_count=6, inference_count=6),
    ),
    ("statistics", "scheduled again"): (_ONCE, _moved("countdown", {1: 4}, execution_count=4, inference_count=2)),
    ("metrics", "scheduled again"): (
        _ONCE,
        {
            "nv_inference_count model=countdown,version=1": 2,
            "nv_inference_exec_count model=countdown,version=1": 4,
            "nv_inference_request_success model=countdown,version=1": 2,
        },
    ),
}

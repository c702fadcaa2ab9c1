"""Answers of Argosy that differ from Triton's on purpose: models, settings, traces and shared memory."""

from typing import Any

from tests.differential.deviations.case import Deviation


def _refused(message: str) -> list[Any]:
    return [{"status": 400, "type": "<error>", "body": {"error": f"[request id: <id_unknown>] {message}"}}]


_FACTS = (
    '{"correlation_id": 0, "flags": 0, "inputs": ["IN"], "outputs": ["PARAMETERS", "REQUEST"], '
    '"request_id": "", "timeout": 0}'
)


def _text(name: str, value: str) -> dict[str, Any]:
    return {"name": name, "datatype": "BYTES", "shape": [1], "data": [value]}


_LOG_SETTINGS = {
    "log_file": "",
    "log_info": True,
    "log_warning": True,
    "log_error": True,
    "log_verbose_level": 0,
    "log_format": "default",
}
_TRACE_SETTINGS = {
    "trace_level": ["TIMESTAMPS"],
    "trace_rate": "1",
    "trace_count": "-1",
    "log_frequency": "0",
    "trace_file": "<file>",
    "trace_mode": "triton",
}
_OF_HTTP = ["HTTP_RECV_END", "HTTP_RECV_START", "HTTP_SEND_END", "HTTP_SEND_START"]
_OF_A_MODEL = [
    "COMPUTE_END",
    "COMPUTE_INPUT_END",
    "COMPUTE_OUTPUT_START",
    "COMPUTE_START",
    "QUEUE_START",
    "REQUEST_END",
    "REQUEST_START",
]


def _region_steps(*refusals: tuple[int, str], registered: bool = True) -> dict[str, Any]:
    """Return the answers to a registration, if it comes first, and to requests that are refused over HTTP."""
    first = [{"status": 200, "type": "<empty>", "body": ""}] if registered else []
    refused = [{"status": status, "type": "<error>", "body": {"error": text}} for status, text in refusals]
    return {"steps": [*first, *refused], "pages": ["", ""]}


def _invalid_key(key: str) -> str:
    return f"cannot register shared memory region 'r' - invalid shm key '{key}'"


_RESERVED_KEY = (
    "cannot register shared memory region 'r' with key '/triton_python_backend_shm_region_x' as the key contains the "
    "reserved prefix 'triton_python_backend_shm_region_'"
)
_MISMATCH = (
    "[request id: <id_unknown>] input byte size mismatch for input 'INPUT0' for model 'add_sub'. Expected 64, got 0"
)
_TOO_SMALL = (
    "shared memory size specified with the request for output 'OUTPUT0' (0 bytes) should be at least 64 bytes to hold "
    "the results"
)
_OVERFLOW = (
    "Integer overflow detected: byte_size (18446744073709551615) + offset (64) exceeds maximum value "
    "(18446744073709551615) for region 'r'"
)
_RULES = "rules of shared memory"


def _answered(model: str, *outputs: dict[str, Any]) -> list[Any]:
    body = {"model_name": model, "model_version": "1", "outputs": list(outputs)}
    return [{"status": 200, "type": "application/json", "body": body}]


_NO_INPUT = "no inputs at all"
_NOTHING_GOT = {"name": "GOT", "datatype": "BYTES", "shape": [1, 1], "data": [""]}
SERVER: dict[tuple[str, str], Deviation] = {
    ("http_ensembles", "ensemble both outputs left out"): Deviation(
        _NO_INPUT, _answered("optional_link", _NOTHING_GOT)
    ),
    ("http_ensembles", "ensemble optional input and output left out"): Deviation(
        _NO_INPUT, _answered("optional_edge", _NOTHING_GOT)
    ),
    ("http_ensembles", "ensemble left out and requested"): Deviation(
        "outputs of steps that are read",
        _answered("optional_link"),
    ),
    ("http_python_raising", "probe: labels of numbers"): Deviation(
        "labels that are numbers",
        _answered("probe", _text("RESULT", "null")),
    ),
    ("http_errors", "wrong batch of none"): Deviation(
        "a batch of 0",
        _refused("inference request batch-size must be >= 1 for 'identity'"),
    ),
    ("http_errors", "wrong cut off"): Deviation(
        "JSON cut off",
        [
            {
                "status": 500,
                "type": "<error>",
                "body": {"error": "failed to parse the request JSON buffer: Invalid value. at 27"},
            }
        ],
    ),
    ("http_errors", "wrong optional given, required missing"): Deviation(
        "an optional input for a required one",
        _refused(
            "expected number of inputs between 1 and 2 but got 1 inputs for model 'autoconf'. Got input(s) "
            "['BIAS'], but missing required input(s) ['IN']. Please provide all required input(s)."
        ),
    ),
    ("http_generate", "generate parameter null"): Deviation(
        "null for what is left out",
        [
            {
                "status": 200,
                "type": "application/json",
                "body": {"length": 2, "model_name": "text", "model_version": "1", "text_output": "hi"},
            }
        ],
    ),
    ("http_infer", "infer parameters beyond int64"): Deviation(
        "an integer beyond int64",
        [
            {
                "status": 200,
                "type": "application/json",
                "body": {
                    "model_name": "parameters",
                    "model_version": "1",
                    "outputs": [
                        _text("PARAMETERS", '{"big": 9223372036854775808}'),
                        _text("REQUEST", _FACTS),
                    ],
                },
            }
        ],
    ),
    ("traces", "an empty change"): Deviation(
        "trace settings without a body",
        {"answers": [{"status": 200, "type": "application/json", "body": _TRACE_SETTINGS}], "files": {}},
    ),
    ("traces", "a wrong request"): Deviation(
        "traces of refused requests",
        {
            "answers": [400, 200],
            "files": {
                "trace.json": [
                    {"head": {}, "times": _OF_HTTP, "tensors": []},
                    {
                        "head": {"model_name": "double", "model_version": 1},
                        "times": sorted([*_OF_HTTP, *_OF_A_MODEL, "INFER_RESPONSE_COMPLETE"]),
                        "tensors": [],
                    },
                ]
            },
        },
    ),
    ("http_server", "logging change unknown format"): Deviation(
        "a wrong log format",
        [
            {"status": 400, "type": "<error>", "body": {"error": "invalid argument for log_format, got: nope"}},
            {"status": 200, "type": "application/json", "body": _LOG_SETTINGS},
        ],
    ),
    ("shared_memory", "register without a body"): Deviation(
        _RULES,
        _region_steps((400, "Shared memory register request has no 'key' field"), registered=False),
    ),
    ("shared_memory", "register an overflow"): Deviation(
        _RULES,
        _region_steps((400, "failed to register shared memory region 'r': invalid args"), registered=False),
    ),
    ("shared_memory", "register a key of slashes"): Deviation(
        _RULES, _region_steps((400, _invalid_key("///")), registered=False)
    ),
    ("shared_memory", "register an empty key"): Deviation(
        _RULES, _region_steps((400, _invalid_key("")), registered=False)
    ),
    ("shared_memory", "register a reserved key"): Deviation(
        _RULES, _region_steps((400, _RESERVED_KEY), registered=False)
    ),
    ("shared_memory", "register nothing over gRPC"): Deviation(
        _RULES,
        {
            "steps": [
                {
                    "code": "INVALID_ARGUMENT",
                    "details": "cannot register shared memory region '' - invalid shm key ''",
                    "messages": [],
                }
            ],
            "pages": ["", ""],
        },
    ),
    ("shared_memory", "an empty tensor"): Deviation(
        _RULES,
        {
            "steps": [
                {"status": 200, "type": "<empty>", "body": ""},
                {
                    "status": 200,
                    "type": "application/json",
                    "body": {
                        "model_name": "every_type",
                        "model_version": "1",
                        "outputs": [{"name": "OUT_INT32", "datatype": "INT32", "shape": [0], "data": []}],
                    },
                },
            ],
            "pages": ["", ""],
        },
    ),
    ("shared_memory", "refused over HTTP: without a size"): Deviation(_RULES, _region_steps((400, _MISMATCH))),
    ("shared_memory", "refused over HTTP: an overflow"): Deviation(_RULES, _region_steps((400, _OVERFLOW))),
    ("shared_memory", "refused over HTTP: an output without a size"): Deviation(
        _RULES, _region_steps((500, _TOO_SMALL))
    ),
    ("grpc", "stream unknown model, as status"): Deviation(
        "errors that end a stream",
        {"code": "NOT_FOUND", "details": "Request for unknown model: 'nope' is not found", "messages": []},
    ),
}

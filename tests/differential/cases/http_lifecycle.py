"""Load, unload and what the index says of it. Each case leaves the models as it found them."""

import json
from typing import Any

from tests.differential.http_calls import Call, Case, get, infer, post, tensor

OVERRIDE: dict[str, Any] = {
    "name": "scale",
    "backend": "python",
    "max_batch_size": 4,
    "input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [16]}],
    "output": [{"name": "OUT", "data_type": "TYPE_INT32", "dims": [16]}],
    "parameters": {"factor": {"string_value": "5"}},
}

INDEX = post("/v2/repository/index", settle=True)
SCALE = infer("scale", tensor("IN", [1, 16], "INT32", list(range(16))))


def _load(model: str, body: Any = None) -> Call:
    return post(f"/v2/repository/models/{model}/load", body)


def _unload(model: str, body: Any = None) -> Call:
    return post(f"/v2/repository/models/{model}/unload", body)


def _with(config: Any) -> Call:
    return _load("scale", {"parameters": {"config": config}})


def _changed(**fields: Any) -> Call:
    return _with(json.dumps({**OVERRIDE, **fields}))


CASES = [
    Case(
        "unload and load",
        (
            _unload("text"),
            INDEX,
            get("/v2/models/text"),
            get("/v2/models/text/ready"),
            get("/v2/models/text/stats"),
            infer("text"),
            get("/v2/health/ready"),
            _load("text"),
            get("/v2/models/text/ready"),
            INDEX,
        ),
    ),
    Case("load again", (_load("text"), _load("text", {}), get("/v2/models/text/ready"))),
    Case(
        "unload both versions",
        (
            _unload("versioned"),
            INDEX,
            get("/v2/models/versioned/versions/1/ready"),
            _load("versioned"),
            INDEX,
        ),
    ),
    Case(
        "unload an ensemble's model",
        (
            _unload("scale"),
            INDEX,
            get("/v2/models/diamond/ready"),
            _load("scale"),
            get("/v2/models/diamond/ready"),
            INDEX,
        ),
    ),
    Case(
        "unload an ensemble with its models",
        (
            _unload("diamond", {"parameters": {"unload_dependents": True}}),
            INDEX,
            _load("add_sub"),
            _load("scale"),
            _load("diamond"),
            INDEX,
        ),
    ),
    Case(
        "load with a configuration",
        (
            _changed(),
            get("/v2/models/scale/config"),
            SCALE,
            _unload("scale"),
            INDEX,
            _load("scale"),
            get("/v2/models/scale/config"),
            SCALE,
            INDEX,
        ),
    ),
    Case("load unknown", (_load("nope"), _unload("nope"))),
    Case("load malformed", (_load("scale", "{bad"), _load("scale", {"parameters": 5}))),
    Case("load of a repository", (post("/v2/repository/r/models/scale/load"),)),
    Case(
        "load with a wrong configuration",
        (
            _with("{bad"),
            _with("{}"),
            _with(5),
            _changed(max_batch=3),
            _changed(name="other"),
            _changed(max_batch_size=-1),
            _changed(backend="nope"),
            get("/v2/models/scale/config"),
            SCALE,
            INDEX,
        ),
    ),
    Case("load with an unknown parameter", (_load("scale", {"parameters": {"nonsense": 5}}), INDEX)),
]

"""Calls about the server and its models: metadata, configuration, health, index, settings."""

from typing import Any

from tests.differential.http_calls import Call, Case, get, post

MODELS = (
    "add_sub",
    "autoconf",
    "bls",
    "bytes_identity",
    "chain",
    "classifier",
    "diamond",
    "every_type",
    "failing",
    "identity",
    "parameters",
    "repeat",
    "reshaped",
    "scale",
    "sequence_sum",
    "text",
    "unbatched",
    "versioned",
    "warmup",
    "words",
)

PATHS = (
    "/v2",
    "/v2/",
    "/v2/health/live",
    "/v2/health/ready",
    "/v2/models/identity/ready",
    "/v2/models/identity/versions/1/ready",
    "/v2/models/identity/versions/2/ready",
    "/v2/models/nope/ready",
    "/v2/models/identity/versions/1",
    "/v2/models/identity/versions/2",
    "/v2/models/identity/versions/x",
    "/v2/models/identity/versions/99999999999999999999",
    "/v2/models/identity/versions/9223372036854775807/ready",
    "/v2/models/nope",
    "/v2/models/versioned/versions/1",
    "/v2/models/versioned/versions/2",
    "/v2/models/versioned/versions/2/ready",
    "/v2/models/versioned/versions/3/ready",
    "/v2/models/versioned/versions/1/config",
    "/v2/models/nope/config",
    "/v2/models/identity/versions/9/config",
    "/v2/models/nope/stats",
    "/v2/models/identity/versions/7/stats",
    "/v2/models/identity/nonsense",
    "/v2/models",
    "/nope",
    "/",
    "/v2/trace/setting",
    "/v2/models/identity/trace/setting",
    "/v2/logging",
    "/v2/systemsharedmemory/status",
    "/v2/cudasharedmemory/status",
    "/v2/systemsharedmemory/region/x/status",
    "/v2/repository/index",
)

WRONG_METHODS = (
    post("/v2"),
    post("/v2/health/live"),
    get("/v2/models/identity/infer"),
    get("/v2/models/text/generate"),
    Call("DELETE", "/v2/models/identity"),
    post("/v2/models/identity"),
    post("/v2/models/identity/ready"),
    post("/v2/models/identity/config"),
    get("/v2/repository/models/identity/load"),
)

LOG_CHANGES: dict[str, Any] = {
    "of nothing": {},
    "null": {"log_info": None},
    "unknown": {"nonsense": 5},
    "file": {"log_file": "somewhere.log"},
    "number for a boolean": {"log_info": 5},
    "text for a boolean": {"log_warning": "true"},
    "text for a number": {"log_verbose_level": "1"},
    "negative": {"log_verbose_level": -1},
    "unknown format": {"log_format": "nope"},
    "number for a format": {"log_format": 5},
    "no object": [],
    "malformed": "{bad",
}
LOGGING = "/v2/logging"
TRACING = "/v2/trace/setting"
LOG_DEFAULTS = {"log_info": True, "log_warning": True, "log_error": True, "log_verbose_level": 0}

CASES = [
    *(Case(f"logging change {name}", (post(LOGGING, change), get(LOGGING))) for name, change in LOG_CHANGES.items()),
    Case(
        "logging changes",
        (
            post(LOGGING, {"log_info": False, "log_verbose_level": 1, "log_format": "ISO8601"}),
            get(LOGGING),
            post(LOGGING, {**LOG_DEFAULTS, "log_format": "default"}),
        ),
    ),
    Case(
        "shared memory unregister", (post("/v2/systemsharedmemory/unregister"), post("/v2/cudasharedmemory/unregister"))
    ),
    Case(
        "shared memory unregister unknown",
        (post("/v2/systemsharedmemory/region/x/unregister"), post("/v2/cudasharedmemory/region/x/unregister")),
    ),
    Case("trace setting unknown", (post(TRACING, {"nonsense": 5}), get(TRACING))),
    Case(
        "trace setting unknown with a known one",
        (post(TRACING, {"nonsense": 5, "trace_rate": "7"}), get(TRACING), post(TRACING, {"trace_rate": None})),
    ),
    Case("shared memory unknown on a GPU", (get("/v2/cudasharedmemory/region/x/status"),)),
    *(Case(f"get {path}", (get(path),)) for path in PATHS),
    *(Case(f"metadata {model}", (get(f"/v2/models/{model}"),)) for model in MODELS),
    *(Case(f"config {model}", (get(f"/v2/models/{model}/config"),)) for model in MODELS),
    *(Case(f"wrong method {call.method} {call.path}", (call,)) for call in WRONG_METHODS),
    Case("index", (post("/v2/repository/index"),)),
    Case("index ready", (post("/v2/repository/index", {"ready": True}),)),
    Case("index malformed", (post("/v2/repository/index", "{bad"),)),
    Case("index of a repository", (post("/v2/repository/x/index"),)),
]

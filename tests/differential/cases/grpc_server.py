"""Calls about the server and its models over gRPC: (name, method, requests)."""

from typing import Any

_MODEL = ("ModelReady", "ModelMetadata", "ModelConfig")
_VERSIONS = (
    ("identity", ""),
    ("identity", "1"),
    ("identity", "2"),
    ("identity", "x"),
    ("nope", ""),
    ("chain", ""),
    ("diamond", ""),
    ("autoconf", ""),
    ("sequence_sum", ""),
    ("repeat", ""),
    ("warmup", ""),
    ("unbatched", ""),
)

CALLS: list[tuple[str, str, list[dict[str, Any]]]] = [
    ("live", "ServerLive", [{}]),
    ("ready", "ServerReady", [{}]),
    ("server", "ServerMetadata", [{}]),
    *(
        (f"{method} {name} {version}".strip(), method, [{"name": name, "version": version}])
        for method in _MODEL
        for name, version in _VERSIONS
    ),
    ("statistics unknown", "ModelStatistics", [{"name": "nope"}]),
    ("statistics unknown version", "ModelStatistics", [{"name": "identity", "version": "2"}]),
    ("index", "RepositoryIndex", [{}]),
    ("index ready", "RepositoryIndex", [{"ready": True}]),
    ("index of a repository", "RepositoryIndex", [{"repository_name": "x"}]),
    ("load unknown", "RepositoryModelLoad", [{"model_name": "nope"}]),
    ("load again", "RepositoryModelLoad", [{"model_name": "text"}]),
    ("load of a repository", "RepositoryModelLoad", [{"model_name": "text", "repository_name": "r"}]),
    ("unload unknown", "RepositoryModelUnload", [{"model_name": "nope"}]),
    ("unload of a repository", "RepositoryModelUnload", [{"model_name": "text", "repository_name": "r"}]),
    ("shared memory", "SystemSharedMemoryStatus", [{}]),
    ("shared memory unknown", "SystemSharedMemoryStatus", [{"name": "x"}]),
    ("cuda shared memory", "CudaSharedMemoryStatus", [{}]),
    ("trace setting", "TraceSetting", [{}]),
    ("trace setting of a model", "TraceSetting", [{"model_name": "identity"}]),
    ("trace setting of an unknown model", "TraceSetting", [{"model_name": "nope"}]),
    *(
        (f"trace setting {name}", "TraceSetting", [{"settings": {setting: {"value": values}}}])
        for name, setting, values in (
            ("off", "trace_level", ["OFF"]),
            ("on without a file", "trace_level", ["TIMESTAMPS"]),
            ("off and more", "trace_level", ["OFF", "TENSORS"]),
            ("unknown level", "trace_level", ["LOUD"]),
            ("level taken back", "trace_level", []),
            ("two rates", "trace_rate", ["1", "2"]),
            ("rate in words", "trace_rate", ["two"]),
            ("rate too large", "trace_rate", ["99999999999"]),
            ("count below -1", "trace_count", ["-2"]),
            ("count too small", "trace_count", ["-99999999999"]),
            ("two frequencies", "log_frequency", ["1", "2"]),
            ("file", "trace_file", ["elsewhere"]),
            ("unknown", "nonsense", ["1"]),
        )
    ),
    ("log settings", "LogSettings", [{}]),
    *(
        (f"log settings {name}", "LogSettings", [{"settings": {setting: value}}])
        for name, setting, value in (
            ("set", "log_info", {"bool_param": True}),
            ("unknown", "nonsense", {"bool_param": True}),
            ("file", "log_file", {"string_param": "somewhere.log"}),
            ("text for a boolean", "log_info", {"string_param": "true"}),
            ("boolean for a number", "log_verbose_level", {"bool_param": True}),
            ("number for a format", "log_format", {"uint32_param": 1}),
            ("unknown format", "log_format", {"string_param": "nope"}),
        )
    ),
    ("shared memory unregister", "SystemSharedMemoryUnregister", [{}]),
    ("shared memory unregister unknown", "SystemSharedMemoryUnregister", [{"name": "x"}]),
    ("cuda shared memory unknown", "CudaSharedMemoryStatus", [{"name": "x"}]),
    ("cuda shared memory unregister", "CudaSharedMemoryUnregister", [{}]),
]

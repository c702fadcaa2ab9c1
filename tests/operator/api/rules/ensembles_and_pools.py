"""Rules of ensembles and of pools."""

from tests.operator.api.rules.case import Case

ENSEMBLE: list[Case] = [
    ({"scaling.maxInstances": 3}, "spec.scaling.maxInstances", "unknown field (known: targets"),
    ({"steps": []}, "spec.steps", "1 or more entries"),
    ({"steps.0.inputs": {}}, "spec.steps[0].inputs", "1 or more entries"),
    ({"steps.0.outputs": ...}, "spec.steps[0].outputs", "is required"),
    ({"steps.0.version": 0}, "spec.steps[0].version", "1 or more"),
    ({"inputs": []}, "spec.inputs", "1 or more entries"),
    ({"inputs.0.reshape": {"shape": [1, 1]}}, "spec.inputs[0].reshape", "cannot reshape"),
    ({"outputs.1": {"name": "vector", "dataType": "TYPE_FP32", "dims": [1]}}, "spec.outputs[1].name", "already"),
    ({"minReplicas": 2, "maxReplicas": 1}, "spec.maxReplicas", "less than minReplicas 2"),
    ({"maxInflightRequests": 0}, "spec.maxInflightRequests", "1 or more"),
    ({"chat.text": "anwser"}, "spec.chat.text", "names 'anwser', which is no output"),
    ({"chat.text": ...}, "spec.chat.text", "is required"),
    ({"chat.prompt": "vector"}, "spec.chat.prompt", "names 'vector', which is no input"),
    ({"chat": {"text": "answer"}}, "spec.chat", "needs prompt or messages"),
    ({"chat.maxTokens": "text"}, "spec.chat.maxTokens", "of TYPE_STRING; expected TYPE_INT32 or TYPE_INT64"),
    ({"inputs.0.dims": [3]}, "spec.chat.prompt", "of dims [3]; expected one element"),
    (
        {"inputs.1": {"name": "lang", "dataType": "TYPE_STRING", "dims": [1]}},
        "spec.chat",
        "no value to input 'lang'",
    ),
    ({"chat.sytem": "text"}, "spec.chat.sytem", "did you mean 'system'?"),
    (
        {"config": {"parameters": {"chat": {"string_value": "{}"}}}},
        "spec.config.parameters.chat",
        "is decided by spec.chat; set that instead",
    ),
    ({"config": {"dynamic_batching": {}}}, "spec.config.dynamic_batching", "is decided by its steps' models"),
    ({"config": {"platform": "x"}}, "spec.config.platform", "is decided by spec.steps; set that instead"),
    ({"config": {"response_cach": {}}}, "spec.config.response_cach", "did you mean 'response_cache'?"),
    ({"rollout.steps.0.traffic": "0%"}, "spec.rollout.steps[0].traffic", "must be more than 0%"),
    ({"slo.timeToFirstToken.p95": "1 s"}, "spec.slo.timeToFirstToken.p95", "no duration"),
]
POOL: list[Case] = [
    ({"runtime.name": "tritn"}, "spec.runtime.name", "did you mean 'triton'?"),
    ({"packing.consolidate": True}, "spec.packing.consolidate", 'write "Auto" to move models, or "Recommend"'),
    ({"packing.consolidate": False}, "spec.packing.consolidate", 'write "Off", in quotes'),
    ({"packing.consolidate": "auto"}, "spec.packing.consolidate", "did you mean 'Auto'?"),
    ({"packing.consolidateAfter": 60}, "spec.packing.consolidateAfter", "write it as 200ms, 30s, 5m or 1h30m"),
    (
        {"packing.consolidationBudget": {"movesPerHour": 0}},
        "spec.packing.consolidationBudget.movesPerHour",
        "1 or more",
    ),
    (
        {"packing.consolidationBudget": {"bytesPerHour": "0"}},
        "spec.packing.consolidationBudget.bytesPerHour",
        "to move nothing, set spec.packing.consolidate to Recommend",
    ),
    ({"runtime.args": ["log-verbose=1"]}, "spec.runtime.args[0]", "--name=value"),
    ({"runtime.args": ["--log-verbose=1", "--http-port=1"]}, "spec.runtime.args[1]", "clients and probes"),
    ({"runtime.args": ["--cache-c=local"]}, "spec.runtime.args[0]", "set spec.cache"),
    ({"tracing": {}}, "spec.tracing.endpoint", "is required"),
    ({"tracing": {"endpoint": "otel:4318"}}, "spec.tracing.endpoint", "is not a URL that begins with http://"),
    ({"tracing": {"endpoint": "http://otel:4318", "rate": -1}}, "spec.tracing.rate", "0 or more"),
    (
        {"tracing": {"endpoint": "http://otel:4318"}, "runtime.args": ["--trace-config=rate=5"]},
        "spec.runtime.args[0]",
        "--trace-config is set by spec.tracing",
    ),
    ({"rateLimit.resources.1.device": ...}, "spec.rateLimit.resources[1]", "counted already"),
    ({"rateLimit.resources.0.name": "a:b"}, "spec.rateLimit.resources[0].name", "no colon"),
    ({"openai.apiKeys.secretName": "s"}, "spec.openai.apiKeys", "set spec.runtime.name to argosy"),
    ({"openai": {"apiKeys": {}}}, "spec.openai.apiKeys.secretName", "is required"),
    (
        {"openai": {"apiKeys": {"secretName": "s", "key": "a/b"}}},
        "spec.openai.apiKeys.key",
        "is not the key of a Secret",
    ),
    (
        {
            "openai": {"apiKeys": {"secretName": "s"}},
            "runtime.name": "argosy",
            "runtime.args": ["--openai-api-keys-file=/keys"],
        },
        "spec.runtime.args[0]",
        "is set by spec.openai.apiKeys",
    ),
    ({"cache.size": "0"}, "spec.cache.size", "1 or more"),
    ({"runtime.podTemplate.spec": "tolerant"}, "spec.runtime.podTemplate.spec", "expected a map"),
    ({"tolerations.0.value": "x"}, "spec.tolerations[0].value", "must be empty"),
    ({"tolerations.0": {"operator": "Equal"}}, "spec.tolerations[0].key", "unless operator is Exists"),
    ({"maxGpusPerServer": -1}, "spec.maxGpusPerServer", "0 or more"),
    ({"minServers": 4}, "spec.maxServers", "is 3, less than minServers 4"),
    ({"memoryHeadroom": "0.2"}, "spec.memoryHeadroom", "no percentage"),
    ({"storage.engineCache": {}}, "spec.storage.engineCache.storageUri", "is required"),
    *(
        ({"storage.allowedFolders": [path]}, "spec.storage.allowedFolders[0]", "is not a folder's path")
        for path in ("mnt", "/mnt/..", "/mnt/../secrets", "", "/mnt/")
    ),
    ({"monitoring.prometheus.url": "prometheus:9090"}, "spec.monitoring.prometheus.url", "begins with http://"),
    ({"suspend": "yes"}, "spec.suspend", "expected true or false"),
    ({"nodeselector": {}}, "spec.nodeselector", "did you mean 'nodeSelector'?"),
]

"""Rules of a model's engine, and of the configuration next to it."""

from tests.operator.api.rules.case import Case

ENGINE: list[Case] = [
    ({"engine.accuracy": ...}, "spec.engine.accuracy", "int8 is below a baseline of 16 bits"),
    (
        {"engine.precision": "fp32", "engine.accuracy.baselinePrecision": "fp16"},
        "spec.engine.accuracy.baselinePrecision",
        "coarser",
    ),
    (
        {"engine.builder": "tensorrt_llm", "engine.options": {}},
        "spec.engine.builder",
        "compiles models of format 'huggingface'",
    ),
    ({"engine.timeout": "2 hours"}, "spec.engine.timeout", "30s, 5m or 1h30m"),
    ({"engine.calibration": {}}, "spec.engine.calibration.dataUri", "is required"),
    ({"engine.accuracy.dataUri": ...}, "spec.engine.accuracy.dataUri", 'as skip: "measured elsewhere"'),
    ({"engine.accuracy.min": ...}, "spec.engine.accuracy.min", "set min: the value that is good enough"),
    (
        {"engine.accuracy": {"metric": "mean_squared_error", "dataUri": "s3://b/d"}},
        "spec.engine.accuracy.max",
        "set max: the value that is good enough",
    ),
    (
        {"engine.accuracy.metric": "mean_squared_error"},
        "spec.engine.accuracy.min",
        "a lower mean_squared_error is better",
    ),
    ({"engine.accuracy.max": 2}, "spec.engine.accuracy.max", "a higher cosine_similarity is better; set min instead"),
    ({"engine.accuracy.skip": "measured"}, "spec.engine.accuracy.skip", "leave out min, dataUri, or skip"),
    ({"engine.accuracy.skip": ""}, "spec.engine.accuracy.skip", "1 or more characters"),
    (
        {"engine.accuracy.script": "file:gate.py", "engine.accuracy.metric": "top1_agreement"},
        "spec.engine.accuracy.script",
        "exclude each other",
    ),
    (
        {"engine.accuracy.script": "file:gate.py", "engine.accuracy.max": 0.5},
        "spec.engine.accuracy.max",
        "is 0.5, less than min 0.99",
    ),
]
TREES = {"modelFormat.name": "lightgbm", "engine": ..., "storageUri": "s3://models/ranker.txt"}
CONFIG: list[Case] = [
    ({"config": {"max_batch_size": 4}}, "spec.config.max_batch_size", "is decided by spec.maxBatchSize"),
    (
        {"config": {"cc_model_filenames": {"9.0": "h100.plan"}}},
        "spec.config.cc_model_filenames",
        "is decided by spec.engine; leave one of them out",
    ),
    (
        {"config": {"cc_model_filenames": {"sm_90": "h100.plan"}}, "engine": ...},
        "spec.config.cc_model_filenames.sm_90",
        "is no compute capability; write major.minor",
    ),
    ({"config": {"optimisation": {}}}, "spec.config.optimisation", "did you mean 'optimization'?"),
    *(
        (
            {**TREES, "config": config},
            "spec.config.parameters.is_classifier",
            "is required by models of format lightgbm",
        )
        for config in (..., {}, {"parameters": {"threshold": {"string_value": "0.3"}}}, {"parameters": []})
    ),
    *(
        (
            {**TREES, "config": {"parameters": {name: {"string_value": "yes"}}}},
            f"spec.config.parameters.{name}",
            "'yes'",
        )
        for name in ("is_classifier", "output_class")
    ),
]

"""Rules of a model as a whole: its name, what runs it, its versions."""

MODELS = {
    "name": ('= name: ""', "name", "model configuration must specify 'name'"),
    "no backend": ('= backend: ""', "platform", "unexpected platform type '' for m"),
    "pair": (
        '= backend: "onnxruntime" platform: "pytorch_libtorch"',
        "platform",
        "unexpected 'platform' and 'backend' pair, got:pytorch_libtorch, onnxruntime",
    ),
    "ensemble with backend": (
        'platform: "ensemble"',
        "backend",
        "Ensemble model 'm' must have platform type 'ensemble' and empty backend type",
    ),
    "negative batch": ("= max_batch_size: -1", "max_batch_size", "'max_batch_size' must be non-negative value for m"),
    "latest none": (
        "= version_policy { latest {} }",
        "version_policy.latest.num_versions",
        "at least one version must be available under the version policy of model 'm'",
    ),
    "specific none": (
        "= version_policy { specific {} }",
        "version_policy.specific.versions",
        "at least one version must be available under the version policy of model 'm'",
    ),
    "file outside": (
        'default_model_filename: "../../../good.json"',
        "default_model_filename",
        "'../../../good.json' of model 'm' must be a path inside the folder of its version",
    ),
    "absolute file": (
        'default_model_filename: "/etc/passwd"',
        "default_model_filename",
        "'/etc/passwd' of model 'm' must be a path inside the folder of its version",
    ),
    "file of a GPU outside": (
        'cc_model_filenames { key: "9.0" value: "a/../../b" }',
        'cc_model_filenames["9.0"]',
        "'a/../../b' of model 'm' must be a path inside the folder of its version",
    ),
}

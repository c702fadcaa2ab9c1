"""Rules of a model's instances, and of what warms and measures them."""

INSTANCES = {
    "unknown kind": ("instance_group { kind: 99 }", "instance_group[0].kind", "99 is no value of Kind"),
    "unknown kind of control": (
        "sequence_batching { control_input { name: 'C' control { kind: 77 } } }",
        "sequence_batching.control_input[0].control[0].kind",
        "77 is no value of Kind",
    ),
    "many instances": (
        "instance_group { name: 'g' kind: KIND_CPU count: 1000000000 }",
        "instance_group[0].count",
        "1000000000 is more than the 4096 that are allowed for m",
    ),
    "many warm-ups": (
        "model_warmup { name: 'w' count: 4000000 inputs { key: 'A' value { data_type: TYPE_FP32 zero_data: true } } }",
        "model_warmup[0].count",
        "4000000 is more than the 65536 that are allowed for m",
    ),
    "many candidates": (
        "sequence_batching { oldest { max_candidate_sequences: 2147483647 } }",
        "sequence_batching.oldest.max_candidate_sequences",
        "2147483647 is more than the 262144 that are allowed with this many instances for m",
    ),
    "many slots": (
        "= max_batch_size: 200000 sequence_batching { direct {} } instance_group { name: 'g' count: 2 }",
        "max_batch_size",
        "200000 is more than the 131072 that are allowed with this many instances for m",
    ),
    "cpu with gpus": (
        "instance_group { name: 'g' kind: KIND_CPU gpus: 0 }",
        "instance_group[0].gpus",
        "instance group g of model m has kind KIND_CPU but specifies one or more GPUs",
    ),
    "model with gpus": (
        "instance_group { name: 'g' kind: KIND_MODEL gpus: 0 }",
        "instance_group[0].gpus",
        "instance group g of model m has kind KIND_MODEL but specifies one or more GPUs",
    ),
    "profile": (
        "instance_group { name: 'g' profile: '0' }",
        "instance_group[0].profile",
        "instance group g of model m and platform specifies profile field which is only supported for TensorRT models",
    ),
    "profile index": (
        "= backend: 'tensorrt' platform: 'tensorrt_plan' instance_group { name: 'g' profile: '-1' }",
        "instance_group[0].profile[0]",
        (
            "instance group g of model m and platform tensorrt_plan specifies invalid profile -1. The field should "
            "contain the string representation of a non-negative integer."
        ),
    ),
    "resource scope": (
        (
            "instance_group { name: 'g' rate_limiter { resources { name: 'R' global: true count: 1 } } } "
            "instance_group { name: 'h' rate_limiter { resources { name: 'R' count: 1 } } }"
        ),
        "instance_group[1].rate_limiter.resources[0].global",
        'Resource "R" is present as both global and device-specific resource in the model configuration.',
    ),
    "warmup wildcard": (
        "model_warmup { batch_size: 1 inputs { key: 'A' value { data_type: TYPE_FP32 dims: -1 zero_data: true } } }",
        'model_warmup[0].inputs["A"].dims',
        "warmup setting expects all variable-size dimensions are specified for input 'A'",
    ),
    "warmup data": (
        "model_warmup { batch_size: 1 inputs { key: 'A' value { data_type: TYPE_FP32 dims: 4 } } }",
        'model_warmup[0].inputs["A"]',
        "warmup setting expects input 'A' to have input_data_type set",
    ),
    "warmup datatype": (
        "model_warmup { batch_size: 1 inputs { key: 'A' value { dims: 4 zero_data: true } } }",
        'model_warmup[0].inputs["A"].data_type',
        "warmup setting expects input 'A' to have data_type set for m",
    ),
    "warmup dim": (
        "model_warmup { batch_size: 1 inputs { key: 'A' value { data_type: TYPE_FP32 dims: -4 zero_data: true } } }",
        'model_warmup[0].inputs["A"].dims',
        "tensor 'A' contains an invalid dimension [-4]",
    ),
    "metric identifier": (
        "model_metrics { metric_control { histogram_options { buckets: 1 } } }",
        "model_metrics.metric_control[0]",
        "metric control must specify 'metric_identifier'",
    ),
    "metric family": (
        "model_metrics { metric_control { metric_identifier {} histogram_options { buckets: 1 } } }",
        "model_metrics.metric_control[0].metric_identifier.family",
        "metric identifier must specify non-empty 'family'",
    ),
    "metric options": (
        "model_metrics { metric_control { metric_identifier { family: 'f' } } }",
        "model_metrics.metric_control[0]",
        "metric control must specify 'histogram_options'",
    ),
    "metric buckets": (
        "model_metrics { metric_control { metric_identifier { family: 'f' } histogram_options {} } }",
        "model_metrics.metric_control[0].histogram_options.buckets",
        "histogram options must specify non-empty 'buckets'",
    ),
}

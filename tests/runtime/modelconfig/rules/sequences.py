"""Rules of sequences: their slots, controls and states."""

SEQUENCE = "sequence_batching { control_input { name: 'C' control { %s } } }"
STATE = "sequence_batching { state { input_name: 'S' output_name: 'T' data_type: TYPE_INT32 dims: [ %s ] %s } }"
SEQUENCES = {
    "oldest preferred": (
        "sequence_batching { oldest { preferred_batch_size: 9 } }",
        "sequence_batching.oldest.preferred_batch_size[0]",
        "sequence batching preferred batch size must be <= max batch size for m",
    ),
    "oldest preferred zero": (
        "sequence_batching { oldest { preferred_batch_size: -1 } }",
        "sequence_batching.oldest.preferred_batch_size[0]",
        "sequence batching preferred batch size must be positive for m",
    ),
    "growable memory, two buffers": (
        STATE % ("1", "use_growable_memory: true"),
        "sequence_batching.state[0].use_growable_memory",
        "In order to 'use_growable_memory', you must also enable 'use_single_buffer' for state input name 'S'.",
    ),
    "growable memory on the CPU": (
        STATE % ("1", "use_growable_memory: true use_same_buffer_for_input_output: true")
        + " instance_group { kind: KIND_CPU }",
        "sequence_batching.state[0].use_growable_memory",
        (
            "'use_growable_memory' can only work with KIND_GPU model instances right now. Please either change the "
            "instance type to KIND_GPU or set 'use_growable_memory' to false for state input 'S'"
        ),
    ),
    "slot utilization": (
        "sequence_batching { direct { minimum_slot_utilization: 1.5 } }",
        "sequence_batching.direct.minimum_slot_utilization",
        "sequence batching minimum slot utilization must be in range (0.0, 1.0] for m",
    ),
    "slot utilization nan": (
        "sequence_batching { direct { minimum_slot_utilization: nan } }",
        "sequence_batching.direct.minimum_slot_utilization",
        "sequence batching minimum slot utilization must be in range (0.0, 1.0] for m",
    ),
    "control name": (
        "sequence_batching { control_input { } }",
        "sequence_batching.control_input[0].name",
        "sequence batching control tensor must have a name for m",
    ),
    "control tensor twice": (
        "sequence_batching { control_input { name: 'C' } control_input { name: 'C' } }",
        "sequence_batching.control_input[1].name",
        "sequence batching control tensor 'C' is specified for multiple control kinds for m",
    ),
    "control kind twice": (
        (
            "sequence_batching { control_input { name: 'C' control { kind: CONTROL_SEQUENCE_END bool_false_true: "
            "[ false, true ] } } control_input { name: 'D' control { kind: CONTROL_SEQUENCE_END bool_false_true: "
            "[ false, true ] } } }"
        ),
        "sequence_batching.control_input[1].control[0].kind",
        "sequence batching specifies multiple CONTROL_SEQUENCE_END tensors for m",
    ),
    "control without values": (
        SEQUENCE % "kind: CONTROL_SEQUENCE_START",
        "sequence_batching.control_input[0].control[0]",
        (
            "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' "
            "for CONTROL_SEQUENCE_START for m"
        ),
    ),
    "control with two kinds of values": (
        SEQUENCE % "kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] fp32_false_true: [ 0, 1 ]",
        "sequence_batching.control_input[0].control[0]",
        (
            "sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and "
            "'bool_false_true' for CONTROL_SEQUENCE_READY for m"
        ),
    ),
    "control with one value": (
        SEQUENCE % "kind: CONTROL_SEQUENCE_START fp32_false_true: [ 1 ]",
        "sequence_batching.control_input[0].control[0].fp32_false_true",
        "sequence batching control 'fp32_false_true' must have exactly 2 entries for CONTROL_SEQUENCE_START for m",
    ),
    "corrid with values": (
        SEQUENCE % "kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 int32_false_true: [ 0, 1 ]",
        "sequence_batching.control_input[0].control[0]",
        (
            "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' "
            "for CONTROL_SEQUENCE_CORRID for m"
        ),
    ),
    "corrid datatype": (
        SEQUENCE % "kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_FP32",
        "sequence_batching.control_input[0].control[0].data_type",
        (
            "unexpected data type for control CONTROL_SEQUENCE_CORRID for m. Allowed data types are TYPE_UINT64, "
            "TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING"
        ),
    ),
    "state name": (
        "sequence_batching { state { output_name: 'T' data_type: TYPE_INT32 } }",
        "sequence_batching.state[0].input_name",
        "sequence batching state must specify 'input_name' for m",
    ),
    "state datatype": (
        "sequence_batching { state { input_name: 'S' output_name: 'T' } }",
        "sequence_batching.state[0].data_type",
        "sequence batching state 'S' must specify 'data_type' for m",
    ),
    "two initial states": (
        STATE % ("1", "initial_state {} initial_state {}"),
        "sequence_batching.state[0].initial_state",
        "initial_state field for state input 'S' must contain exactly one or zero element. Found '2' elements.",
    ),
    "initial datatype": (
        STATE % ("1", "initial_state { name: 'i' data_type: TYPE_FP32 dims: 1 zero_data: true }"),
        "sequence_batching.state[0].initial_state[0].data_type",
        "The data type used for 'initial_state' field of state 'S' does not match the state data type.",
    ),
    "initial name": (
        STATE % ("1", "initial_state { data_type: TYPE_INT32 dims: 1 zero_data: true }"),
        "sequence_batching.state[0].initial_state[0].name",
        "Field 'name' must be set when using initial_state for state input 'S'.",
    ),
    "initial rank": (
        STATE % ("1", "initial_state { name: 'i' data_type: TYPE_INT32 dims: [ 1, 1 ] zero_data: true }"),
        "sequence_batching.state[0].initial_state[0].dims",
        (
            "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input 'S'. "
            "2 != 1"
        ),
    ),
    "initial wildcard": (
        STATE % ("-1", "initial_state { name: 'i' data_type: TYPE_INT32 dims: -1 zero_data: true }"),
        "sequence_batching.state[0].initial_state[0].dims[0]",
        "'initial_state' field for state input name 'S' contains variable dimensions.",
    ),
    "initial dim": (
        STATE % ("2", "initial_state { name: 'i' data_type: TYPE_INT32 dims: 3 zero_data: true }"),
        "sequence_batching.state[0].initial_state[0].dims[0]",
        "'initial_state' dim for input name 'S' doesn't match 'state' dim description. 3 != 2",
    ),
    "initial data": (
        STATE % ("1", "initial_state { name: 'i' data_type: TYPE_INT32 dims: 1 }"),
        "sequence_batching.state[0].initial_state[0]",
        "initial_state setting expects state'S' to have state_data set",
    ),
}

"""Rules of inputs and outputs, and of what a server makes of batches of them."""

TENSORS = {
    "tensor name": (
        "input { data_type: TYPE_FP32 dims: 1 }",
        "input[1].name",
        "model input must specify 'name' for m",
    ),
    "datatype": (
        'input { name: "X" dims: 1 }',
        "input[1].data_type",
        "model input 'X' must specify 'data_type' for m",
    ),
    "dims": (
        'output { name: "X" data_type: TYPE_FP32 }',
        "output[1].dims",
        "model output 'X' must specify 'dims' for m",
    ),
    "zero dim": (
        'input { name: "X" data_type: TYPE_FP32 dims: [ 1, 0 ] }',
        "input[1].dims[1]",
        "model input 'X' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m",
    ),
    "dim below -1": (
        'output { name: "X" data_type: TYPE_FP32 dims: [ -2 ] }',
        "output[1].dims[0]",
        "model output 'X' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m",
    ),
    "reshape dim": (
        'input { name: "X" data_type: TYPE_FP32 dims: 1 reshape { shape: [ 0 ] } }',
        "input[1].reshape.shape[0]",
        "model input 'X' reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension for m",
    ),
    "empty reshape without batching": (
        '= max_batch_size: 0 input { name: "X" data_type: TYPE_FP32 dims: 1 reshape {} }',
        "input[1].reshape.shape",
        "model input 'X' cannot have empty reshape for non-batching model as scalar tensors are not supported for m",
    ),
    "reshape count": (
        'input { name: "X" data_type: TYPE_FP32 dims: [ 4 ] reshape { shape: [ 2, 3 ] } }',
        "input[1].reshape.shape",
        "model input 'X' has different size for dims and reshape for m",
    ),
    "empty reshape of several elements": (
        'input { name: "X" data_type: TYPE_FP32 dims: [ 4 ] reshape {} }',
        "input[1].reshape.shape",
        "model input 'X' has different size for dims and reshape for m",
    ),
    "reshape wildcard lost": (
        'input { name: "X" data_type: TYPE_FP32 dims: [ -1, 4 ] reshape { shape: [ 4 ] } }',
        "input[1].reshape.shape",
        "model input 'X' has different size for dims and reshape for m",
    ),
    "reshape wildcard number": (
        'input { name: "X" data_type: TYPE_FP32 dims: [ -1, -1 ] reshape { shape: [ -1 ] } }',
        "input[1].reshape.shape",
        "model input 'X' has different number of variable-size dimensions for dims and reshape for m",
    ),
    "reshape between wildcards": (
        'input { name: "X" data_type: TYPE_FP32 dims: [ 2, -1, 6 ] reshape { shape: [ 6, -1, 2 ] } }',
        "input[1].reshape.shape",
        "model input 'X' has different size for dims and reshape for m",
    ),
    "too many elements": (
        'input { name: "X" data_type: TYPE_FP32 dims: [ 4294967296, 4294967296 ] }',
        "input[1].dims",
        "element count for tensor 'X dims' exceeds maximum size of 9223372036854775807 for m",
    ),
    "too many bytes": (
        'input { name: "X" data_type: TYPE_FP32 dims: [ 4611686018427387904 ] }',
        "input[1].dims",
        "byte size for tensor 'X dims' exceeds maximum size of 9223372036854775807 for m",
    ),
    "duplicate input": (
        'input { name: "A" data_type: TYPE_FP32 dims: 1 }',
        "input[1].name",
        "model input 'A' is specified more than once for m",
    ),
    "duplicate output": (
        'output { name: "B" data_type: TYPE_FP32 dims: 1 }',
        "output[1].name",
        "model output 'B' is specified more than once for m",
    ),
    "image format": (
        'input { name: "X" data_type: TYPE_FP32 dims: [ 1, 2 ] format: FORMAT_NCHW }',
        "input[1].format",
        "model input NHWC/NCHW require 3 dims for m",
    ),
    "shape tensor": (
        'output { name: "X" data_type: TYPE_INT32 dims: 1 is_shape_tensor: true }',
        "output[1].is_shape_tensor",
        "shape tensors are only supported for TensorRT platform for m",
    ),
    "non-linear": (
        'input { name: "X" data_type: TYPE_INT32 dims: 1 is_non_linear_format_io: true }',
        "input[1].is_non_linear_format_io",
        "Non-linear IO format is only supported for the TensorRT platform for m",
    ),
    "non-linear dims": (
        (
            '= backend: "tensorrt" platform: "tensorrt_plan" '
            'output { name: "X" data_type: TYPE_INT32 dims: 1 is_non_linear_format_io: true }'
        ),
        "output[1].is_non_linear_format_io",
        "Non-linear IO format output requires 3 dims for m",
    ),
    "batch input source": (
        "batch_input { kind: BATCH_ITEM_SHAPE target_name: 'Z' data_type: TYPE_INT32 }",
        "batch_input[0].source_input",
        "batch input kind 'BATCH_ITEM_SHAPE' expects 1 source input, got 0 for m",
    ),
    "batch input datatype": (
        "batch_input { target_name: 'Z' data_type: TYPE_INT64 source_input: 'A' }",
        "batch_input[0].data_type",
        "batch input data type must be TYPE_INT32 or TYPE_FP32 for m",
    ),
    "batch input unknown": (
        "batch_input { target_name: 'Z' data_type: TYPE_INT32 source_input: 'Q' }",
        "batch_input[0].source_input[0]",
        "unknown source input name 'Q' for m",
    ),
    "batch output source": (
        "batch_output { target_name: 'B' source_input: 'A' source_input: 'A' }",
        "batch_output[0].source_input",
        "batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' expects 1 source input, got 2 for m",
    ),
    "batch output target": (
        "batch_output { target_name: 'Q' source_input: 'A' }",
        "batch_output[0].target_name[0]",
        "unknown target output name 'Q' for m",
    ),
    "batch output twice": (
        "batch_output { target_name: 'B' target_name: 'B' source_input: 'A' }",
        "batch_output[0].target_name[1]",
        "target output name 'B' can only be specified once for m",
    ),
}

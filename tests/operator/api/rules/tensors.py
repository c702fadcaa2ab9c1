"""Rules of a model's inputs and outputs, and of what batches and sequences it takes."""

from tests.operator.api.rules.case import Case

TENSORS: list[Case] = [
    ({"inputs.0.dims": [4, 0]}, "spec.inputs[0].dims[1]", "1 or more, or -1"),
    ({"inputs.0.dims": [-2]}, "spec.inputs[0].dims[0]", "found -2"),
    ({"inputs.0.dims": []}, "spec.inputs[0].dims", "1 or more entries"),
    ({"inputs.0.dims": 4}, "spec.inputs[0].dims", "expected a list; found 4"),
    ({"inputs.0.dataType": "FP32"}, "spec.inputs[0].dataType", "did you mean 'TYPE_FP32'?"),
    ({"inputs.0.name": "scale"}, "spec.inputs[1].name", "already inputs[0]"),
    ({"inputs.0.name": ""}, "spec.inputs[0].name", "1 or more characters"),
    ({"inputs.0.format": "FORMAT_NHWC"}, "spec.inputs[0].format", "needs 3 dims"),
    ({"inputs.0.labelFilename": "x"}, "spec.inputs[0].labelFilename", "unknown field"),
    *(
        ({"outputs.0.labelFilename": path}, "spec.outputs[0].labelFilename", "is not a path beneath the folder")
        for path in ("/secrets/storage/key", "../secrets", "a/../../b", "..", ".", "a//b", "a/")
    ),
    *(
        ({"config": {"default_model_filename": path}}, "spec.config.default_model_filename", "the model's own folder")
        for path in ("/models/cache/x", "../2/model.onnx")
    ),
    ({"outputs.0.reshape": {"shape": [2, 191]}}, "spec.outputs[0].reshape.shape", "as many elements"),
    ({"outputs.0.reshape": {"shape": [384, -1]}}, "spec.outputs[0].reshape.shape", "same number of -1"),
    ({"outputs.0.isShapeTensor": True, "engine": ...}, "spec.outputs[0].isShapeTensor", "only TensorRT"),
    ({"maxBatchSize": -1}, "spec.maxBatchSize", "0 or more"),
    ({"maxBatchSize": 8}, "spec.batching.preferredBatchSizes[1]", "is 16, more than maxBatchSize 8"),
    (
        {"maxBatchSize": 0, "batching": ..., "inputs.0.allowRaggedBatch": False},
        "spec.inputs[1].reshape.shape",
        "set maxBatchSize",
    ),
    ({"maxBatchSize": 0, "batching": ..., "inputs.1": ...}, "spec.inputs[0].allowRaggedBatch", "no batch"),
    ({"batching.preserveOrdering": True, "batching.queuePolicy": ...}, "spec.batching.preserveOrdering", "one order"),
    (
        {
            "batching.preserveOrdering": True,
            "batching.priorityLevels": 0,
            "batching.defaultPriorityLevel": 0,
            "batching.priorityQueuePolicies": {},
        },
        "spec.batching.queuePolicy.timeoutAction",
        "preserveOrdering forbids",
    ),
    ({"batching.defaultPriorityLevel": 3}, "spec.batching.defaultPriorityLevel", "from 1 to priorityLevels (2)"),
    (
        {"batching.priorityLevels": 0, "batching.priorityQueuePolicies": {}},
        "spec.batching.defaultPriorityLevel",
        "no effect without",
    ),
    ({"batching.priorityQueuePolicies": {"3": {}}}, "spec.batching.priorityQueuePolicies.3", "no priority level 3"),
    ({"batching.queuePolicy.timeoutAction": "DROP"}, "spec.batching.queuePolicy.timeoutAction", "REJECT, DELAY"),
    ({"batching.maxQueueDelayMicroseconds": -1}, "spec.batching.maxQueueDelayMicroseconds", "0 or more"),
    ({"sequence": {}}, "spec.sequence", "exclude each other"),
    (
        {"batching": ..., "sequence": {"direct": {}, "oldest": {"maxCandidateSequences": 4}}},
        "spec.sequence",
        "direct and oldest",
    ),
    (
        {"batching": ..., "sequence": {"oldest": {"maxCandidateSequences": 4, "preferredBatchSizes": [64]}}},
        "spec.sequence.oldest.preferredBatchSizes[0]",
        "is 64",
    ),
    (
        {"batching": ..., "sequence": {"controls": [{"name": "s", "kind": "CONTROL_SEQUENCE_CORRID"}]}},
        "spec.sequence.controls[0].dataType",
        "TYPE_UINT64",
    ),
    (
        {
            "batching": ...,
            "sequence": {
                "controls": [
                    {"name": "s", "kind": "CONTROL_SEQUENCE_END", "dataType": "TYPE_INT32", "falseTrue": [0, 0.5]}
                ]
            },
        },
        "spec.sequence.controls[0].falseTrue",
        "whole numbers",
    ),
    (
        {
            "batching": ...,
            "sequence": {
                "controls": [
                    {"name": "s", "kind": "CONTROL_SEQUENCE_CORRID", "dataType": "TYPE_UINT64", "falseTrue": [0, 1]}
                ]
            },
        },
        "spec.sequence.controls[0].falseTrue",
        "leave it out",
    ),
    (
        {
            "batching": ...,
            "sequence": {
                "controls": [
                    {"name": "s", "kind": "CONTROL_SEQUENCE_END", "dataType": "TYPE_BOOL", "falseTrue": [1, 1]}
                ]
            },
        },
        "spec.sequence.controls[0].falseTrue",
        "in either order",
    ),
    (
        {
            "batching": ...,
            "sequence": {"controls": [{"name": "s", "kind": "CONTROL_SEQUENCE_START", "dataType": "TYPE_INT8"}]},
        },
        "spec.sequence.controls[0].dataType",
        "TYPE_INT32, TYPE_FP32, TYPE_BOOL",
    ),
    (
        {
            "batching": ...,
            "sequence": {
                "states": [
                    {
                        "inputName": "i",
                        "outputName": "o",
                        "dataType": "TYPE_FP32",
                        "dims": [1],
                        "initialState": [{"name": "z", "dataType": "TYPE_FP32", "dims": [1]}],
                    }
                ]
            },
        },
        "spec.sequence.states[0].initialState[0]",
        "exactly one of zeroData: true and dataFile",
    ),
]

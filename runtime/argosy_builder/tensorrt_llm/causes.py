"""Error messages of TensorRT-LLM, TensorRT and modelopt, with the failure and the way out of each.

Texts are of TensorRT-LLM 1.2 and TensorRT 10; they are searched for anywhere in a line, the first row that fits counts.
"""

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.process import Cause

_SMALLER = (
    "raise spec.parallelism, lower max_batch_size, max_num_tokens or max_seq_len in engine.options, or quantize "
    "({line})"
)
_CALIBRATE = "the GPU's memory is not enough to calibrate on: lower calib_batch_size or calib_max_seq_length, or raise "

CAUSES = (
    Cause(
        r"OutOfMemoryError|Error Code 2: Out ?Of ?Memory|Requested (?:size was|amount of GPU memory)"
        r"|resizePhysical|insufficient memory|CUDA runtime error in .*out of memory",
        BuildFailure.OUT_OF_GPU_MEMORY,
        f"the GPU's memory is not enough to build on: {_SMALLER}",
    ),
    Cause(
        r"BrokenProcessPool",
        BuildFailure.OUT_OF_MEMORY,
        "a worker died, most often for want of memory: raise engine.memory, or lower engine.options.workers ({line})",
    ),
    Cause(
        r"Bus error",
        BuildFailure.OUT_OF_MEMORY,
        "shared memory (/dev/shm) is not enough: raise engine.memory, or lower engine.options.workers ({line})",
    ),
    Cause(
        r"Unsupported model architecture: ?(\S*)|architecture (\S+) is not supported in TRT-LLM",
        BuildFailure.UNSUPPORTED_MODEL,
        "TensorRT-LLM makes no engine of this model; set engine.options.backend: pytorch ({line})",
    ),
    Cause(
        r"does not support from_hugging_face|does not support AutoConfig|Cannot export model to the model_config"
        r"|QKV modules format .* not supported|lm_head not available for decoder|decoder_type .* not supported"
        r"|Unsupported quantizer with num_bits|does not recognize this architecture|model is not supported"
        r"|requires you to execute the configuration file",
        BuildFailure.UNSUPPORTED_MODEL,
        "this model cannot be converted so; take another precision, or engine.options.backend: pytorch ({line})",
    ),
    Cause(
        r"Could not find any implementation for node|could not find any supported formats",
        BuildFailure.UNSUPPORTED_MODEL,
        "TensorRT finds no way to compute a layer on this GPU, which may be for want of memory: give it more, set "
        "gpt_attention_plugin and gemm_plugin to auto, or take another precision ({line})",
    ),
    Cause(
        r"Unsupported quantization format|supports only one quantization format|We don't use Modelopt for quantization"
        r"|GPTQ with desc_act",
        BuildFailure.INVALID_OPTIONS,
        "spec.engine.options.qformat does not go with this model; take another ({line})",
    ),
    Cause(
        r"error: argument --(\w+): (.*)",
        BuildFailure.INVALID_OPTIONS,
        "spec.engine.options.{0}: {1}; this release of TensorRT-LLM takes other values",
    ),
    Cause(
        r"error: unrecognized arguments: --(\w+)",
        BuildFailure.INVALID_OPTIONS,
        "spec.engine.options.{0}: this release of TensorRT-LLM has no such option; leave it out",
    ),
    Cause(
        r"PP reduce scatter is only supported|GemmSwiGLU plugin (?:requires|currently has)|multiple_profiles is enabled"
        r"|Gather context logits is not support|StreamingLLM is no longer|unexpected keyword argument '(\w+)'",
        BuildFailure.INVALID_OPTIONS,
        "spec.engine.options: do not go together, or not with this model ({line})",
    ),
    Cause(
        r"is not supported on SM ?>?=?\d*|require hardware with FP8 support|FP8 FMHA (?:can only|cannot) be enabled"
        r"|MoE FP8 is not supported|Fp8 FMHA cannot be enabled",
        BuildFailure.INVALID_OPTIONS,
        "spec.engine.precision: this GPU has not what it needs; take another precision ({line})",
    ),
    Cause(
        r"GPU is required for inference|max_workers must be greater than 0|no kernel image is available",
        BuildFailure.BUILDER_MISSING,
        "the build sees no GPU that this image can use; set engine.image to one that suits the node ({line})",
    ),
    Cause(
        r"Required but not provided tensors|Encounter error '.*' for parameter|has invalid shape .*|HeaderTooLarge"
        r"|InvalidHeader|Could not find any .safetensors or .bin files|Only safetensors/pickle/binary directories",
        BuildFailure.MODEL_INVALID,
        "spec.storageUri: the checkpoint's weights are not what its config.json says ({line})",
    ),
    Cause(
        r"num_attention_heads must be divisible|world_size must equal|Cannot divide (\d+) kv_heads into (\d+) gpus"
        r"|cannot be split into (\d+) ranks|moe_tp_size \* moe_ep_size|assert num_layers % split_factor"
        r"|assert tp_size % num_kv_heads",
        BuildFailure.INVALID_OPTIONS,
        "spec.parallelism: the model cannot be split so ({line})",
    ),
    Cause(
        r"is not divisible for block size (\d+) for block quantization",
        BuildFailure.INVALID_OPTIONS,
        "spec.engine.options.awq_block_size: {0} does not divide the model's weights; lower it or parallelism ({line})",
    ),
    Cause(
        r"Quantization for expert parallelism is not supported",
        BuildFailure.INVALID_OPTIONS,
        "spec.engine.options.moe_ep_size: goes with no format that is calibrated; leave it out",
    ),
    Cause(
        r"Unsupported dataset name or local repo|Column text not in the dataset|EmptyDatasetError"
        r"|DataFilesNotFoundError|Unknown split|doesn't contain any data files|Pad token for .* cannot be set",
        BuildFailure.CALIBRATION_INVALID,
        "spec.engine.calibration: the data or the model's tokenizer does not do for calibration ({line})",
    ),
    Cause(
        r"Couldn't reach|DatasetNotFoundError|OfflineModeIsEnabled|offline mode",
        BuildFailure.MODEL_INVALID,
        "the model's files name others that are not here; store all of them together ({line})",
    ),
    Cause(
        r"No module named '([\w.]+)'|Failed to import modelopt|TensorRT LLM Plugin is unavailable"
        r"|lib(?:cuda|mpi|nvinfer)\S*\.so\S*: cannot open",
        BuildFailure.BUILDER_MISSING,
        "the image lacks a part of TensorRT-LLM: set engine.image to NVIDIA's TensorRT-LLM image ({line})",
    ),
)
OF_CALIBRATION = (
    Cause(
        r"OutOfMemoryError|CUDA out of memory",
        BuildFailure.OUT_OF_GPU_MEMORY,
        f"{_CALIBRATE}spec.parallelism ({{line}})",
    ),
    *CAUSES,
)
"""The same while a model is calibrated, which takes all of it at 16 bits."""

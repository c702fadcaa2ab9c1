"""TensorRT's options: fields and flags of `IBuilderConfig`, in its Python names."""

from .option import Kind, Option, choice, fields, flag, names, quantity, whole

_SHAPE = Option(Kind.LIST, "A whole shape, with the batch.", items=whole("", 0))
_PROFILE = Option(
    Kind.MAP, "The shapes of each input, by its name.", items=fields("", {"min": _SHAPE, "opt": _SHAPE, "max": _SHAPE})
)

TENSORRT: dict[str, Option] = {
    "workspace": quantity("The most GPU memory that a layer may take beside its tensors.", default="all there is"),
    "builder_optimization_level": whole("How long it looks for the fastest, 0 to 5.", 0, 5, default="3"),
    "max_num_tactics": whole("Tactics tried for a layer.", default="TensorRT decides"),
    "avg_timing_iterations": whole("Runs of which a time is the mean.", default="1"),
    "max_aux_streams": whole("Streams beside the main one.", 0, default="TensorRT decides"),
    "max_threads": whole("Threads that build.", default="1"),
    "tactic_sources": names(
        "Where tactics come from.",
        "CUBLAS",
        "CUBLAS_LT",
        "CUDNN",
        "EDGE_MASK_CONVOLUTIONS",
        "JIT_CONVOLUTIONS",
        default="TensorRT decides",
    ),
    "tiling_optimization_level": choice(
        "How long it looks for tilings.", "NONE", "FAST", "MODERATE", "FULL", default="NONE"
    ),
    "l2_limit_for_tiling": quantity("The second-level cache that tilings may take.", default="TensorRT decides"),
    "hardware_compatibility_level": choice(
        "The GPUs that the plan runs on.", "NONE", "AMPERE_PLUS", "SAME_COMPUTE_CAPABILITY", default="NONE"
    ),
    "version_compatible": flag("The plan runs on later releases too.", default="false"),
    "exclude_lean_runtime": flag("Such a plan brings no runtime along.", default="false"),
    "sparse_weights": flag("Weights that are 2:4 sparse are used as such.", default="false"),
    "weight_streaming": flag("Weights may stay in the host's memory.", default="false"),
    "strict_nans": flag("Not-a-numbers are kept as they are.", default="false"),
    "profiling_verbosity": choice(
        "What profilers are told.",
        "LAYER_NAMES_ONLY",
        "DETAILED",
        "NONE",
        default="DETAILED where a precision is read back, else LAYER_NAMES_ONLY",
    ),
    "strongly_typed": flag(
        "Types are those of the ONNX file; a lower precision is made in the file, by ModelOpt.",
        default="true from TensorRT 11 on",
    ),
    "precision_constraints": choice("How strictly the file's own types are kept.", "none", "prefer", "obey"),
    "calibrator": choice(
        "How int8 ranges are found, before TensorRT 11.", "entropy2", "entropy", "minmax", default="entropy2"
    ),
    "profiles": Option(
        Kind.LIST,
        "Shape profiles, in place of those made of dims and batch sizes: min, opt and max by input.",
        items=_PROFILE,
    ),
    "timing_cache": flag("Times of layers are kept for the next build.", default="true"),
}

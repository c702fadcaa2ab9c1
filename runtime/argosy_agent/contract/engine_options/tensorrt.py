"""TensorRT's options: fields and flags of `IBuilderConfig`, in its Python names; and the rules between them."""

from collections.abc import Iterator

from .option import Fault, Kind, Option, choice, fields, flag, integer, names, quantity
from .precisions import Precision
from .requested import RequestedEngine, fault

_SHAPE = Option(Kind.LIST, "A whole shape, with the batch.", items=integer("", 0))
_PROFILE = Option(
    Kind.MAP, "The shapes of each input, by its name.", items=fields("", {"min": _SHAPE, "opt": _SHAPE, "max": _SHAPE})
)

TENSORRT: dict[str, Option] = {
    "workspace": quantity("The most GPU memory of a layer, without its tensors.", default="all there is"),
    "builder_optimization_level": integer("How long it looks for the fastest, 0 to 5.", 0, 5, default=3),
    "max_num_tactics": integer("Tactics tried for a layer.", default="TensorRT decides"),
    "avg_timing_iterations": integer("Runs of which a time is the mean.", default=1),
    "max_aux_streams": integer("Streams in addition to the main one.", 0, default="TensorRT decides"),
    "max_threads": integer("Threads that build.", default=1),
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
    "version_compatible": flag("The plan runs on later releases too.", default=False),
    "exclude_lean_runtime": flag("Such a plan brings no runtime along.", default=False),
    "sparse_weights": flag("Weights that are 2:4 sparse are used as such.", default=False),
    "weight_streaming": flag("Weights may stay in the host's memory.", default=False),
    "strict_nans": flag("Not-a-numbers are kept as they are.", default=False),
    "profiling_verbosity": choice(
        "Detail of the profiling output.",
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
    "timing_cache": flag("Times of layers are kept for the next build.", default=True),
}


def tensorrt_contradictions(engine: RequestedEngine) -> Iterator[Fault]:
    """Yield the errors between options."""
    if engine.on("exclude_lean_runtime") and not engine.on("version_compatible"):
        yield fault("exclude_lean_runtime", "needs version_compatible: true; a plain plan brings no runtime along")
    if engine.options.get("hardware_compatibility_level") == "AMPERE_PLUS" and engine.precision is Precision.FP8:
        yield fault("hardware_compatibility_level", "is AMPERE_PLUS, and Ampere has no fp8; change one of them")
    if engine.has("calibrator") and not engine.calibrated:
        yield fault("calibrator", "needs spec.engine.calibration, whose ranges it finds")
    if engine.on("strongly_typed"):
        for name in ("precision_constraints", "calibrator"):
            if engine.has(name):
                yield fault(name, "means nothing with strongly_typed, where the file decides; leave one of them out")
    if engine.has("l2_limit_for_tiling") and engine.options.get("tiling_optimization_level", "NONE") == "NONE":
        yield fault("l2_limit_for_tiling", "needs tiling_optimization_level, and that is NONE")
    for index, profile in enumerate(engine.options.get("profiles", ())):
        for name, shapes in profile.items():
            yield from _profile(shapes, ("options", "profiles", index, name))


def _profile(shapes: dict[str, list[int]], path: tuple[str | int, ...]) -> Iterator[Fault]:
    missing = [bound for bound in ("min", "opt", "max") if bound not in shapes]
    if missing:
        yield Fault(f"{', '.join(missing)} is required: a profile has a min, an opt and a max shape", path)
        return
    if len({len(shape) for shape in shapes.values()}) > 1:
        yield Fault("min, opt and max have different numbers of dimensions; each is a full shape", path)
    elif any(not a <= b <= c for a, b, c in zip(shapes["min"], shapes["opt"], shapes["max"], strict=True)):
        yield Fault("each dimension must be min ≤ opt ≤ max", path)

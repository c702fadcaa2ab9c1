"""Enumerations, by the names that the bindings give."""

from enum import Enum, IntEnum

DataType = Enum("DataType", "FLOAT HALF INT8 INT32 BOOL UINT8 FP8 BF16 INT64 INT4 FP4 E8M0", start=0)
TensorIOMode = Enum("TensorIOMode", "NONE INPUT OUTPUT", start=0)
TensorLocation = Enum("TensorLocation", "DEVICE HOST", start=0)
TensorFormat = Enum("TensorFormat", "LINEAR CHW2 HWC8 CHW4 CHW16 CHW32 DHWC8 CDHW32 HWC DHWC HWC16", start=0)
ExecutionContextAllocationStrategy = Enum(
    "ExecutionContextAllocationStrategy", "STATIC ON_PROFILE_CHANGE USER_MANAGED", start=0
)
MemoryPoolType = Enum(
    "MemoryPoolType",
    "WORKSPACE DLA_MANAGED_SRAM DLA_LOCAL_DRAM DLA_GLOBAL_DRAM TACTIC_DRAM TACTIC_SHARED_MEMORY",
    start=0,
)
HardwareCompatibilityLevel = Enum("HardwareCompatibilityLevel", "NONE AMPERE_PLUS SAME_COMPUTE_CAPABILITY", start=0)
ProfilingVerbosity = Enum("ProfilingVerbosity", "LAYER_NAMES_ONLY NONE DETAILED", start=0)
LayerInformationFormat = Enum("LayerInformationFormat", "ONELINE JSON", start=0)
RuntimePlatform = Enum("RuntimePlatform", "SAME_AS_BUILD WINDOWS_AMD64", start=0)
TilingOptimizationLevel = Enum("TilingOptimizationLevel", "NONE FAST MODERATE FULL", start=0)
TacticSource = IntEnum("TacticSource", "EDGE_MASK_CONVOLUTIONS JIT_CONVOLUTIONS", start=3)
OnnxParserFlag = IntEnum("OnnxParserFlag", "NATIVE_INSTANCENORM", start=0)
ErrorCode = IntEnum(
    "ErrorCode",
    "SUCCESS INTERNAL_ERROR MEM_ALLOC_FAILED MODEL_DESERIALIZE_FAILED INVALID_VALUE INVALID_GRAPH INVALID_NODE "
    "UNSUPPORTED_GRAPH UNSUPPORTED_NODE UNSUPPORTED_NODE_ATTR UNSUPPORTED_NODE_INPUT UNSUPPORTED_NODE_DATATYPE "
    "UNSUPPORTED_NODE_DYNAMIC UNSUPPORTED_NODE_SHAPE REFIT_FAILED",
    start=0,
)

_BOTH = (
    "DEBUG GPU_FALLBACK REFIT DISABLE_TIMING_CACHE EDITABLE_TIMING_CACHE TF32 SPARSE_WEIGHTS SAFETY_SCOPE DIRECT_IO "
    "VERSION_COMPATIBLE EXCLUDE_LEAN_RUNTIME ERROR_ON_TIMING_CACHE_MISS DISABLE_COMPILATION_CACHE STRIP_PLAN "
    "REFIT_IDENTICAL REFIT_INDIVIDUAL WEIGHT_STREAMING STRICT_NANS MONITOR_MEMORY DISTRIBUTIVE_INDEPENDENCE"
)
_ONLY_IN_10 = "FP16 BF16 INT8 FP8 INT4 FP4 OBEY_PRECISION_CONSTRAINTS PREFER_PRECISION_CONSTRAINTS"


def builder_flags(major: int) -> type[Enum]:
    """Return `BuilderFlag` of a release: 11 has neither weak precision nor the numbers of 10."""
    return Enum("BuilderFlag", _BOTH if major >= 11 else f"{_ONLY_IN_10} {_BOTH}", start=0)  # type: ignore[return-value]


def creation_flags(major: int) -> type[IntEnum]:
    """Return `NetworkDefinitionCreationFlag` of a release."""
    names = "STRONGLY_TYPED PREFER_AOT_PYTHON_PLUGINS"
    if major < 11:
        names = f"EXPLICIT_BATCH {names}"
    return IntEnum("NetworkDefinitionCreationFlag", names, start=0)  # type: ignore[return-value]


__all__ = [
    "DataType",
    "ErrorCode",
    "ExecutionContextAllocationStrategy",
    "HardwareCompatibilityLevel",
    "LayerInformationFormat",
    "MemoryPoolType",
    "OnnxParserFlag",
    "ProfilingVerbosity",
    "RuntimePlatform",
    "TacticSource",
    "TensorFormat",
    "TensorIOMode",
    "TensorLocation",
    "TilingOptimizationLevel",
]

"""The meaning of config.pbtxt: reading it, its datatypes, defaults, rules and shapes.

Pure: no I/O, no clock, and nothing else of argosy_runtime, because the operator imports this package too.
The schema is `tritonclient.grpc.model_config_pb2.ModelConfig`; nothing here defines a second one.
"""

from .datatypes import config_type, element_size, numpy_dtype, v2_name
from .defaults import normalize
from .ensembles.fit import check_steps, is_decoupled
from .ensembles.graph import EnsembleGraph, EnsembleStep
from .errors import ConfigError, Violation
from .instances import InstancePlacement, instances
from .rules import check, check_placement, check_structure
from .serialization.json_config import parse_json, to_json
from .serialization.text import parse_text

__all__ = [
    "ConfigError",
    "Violation",
    "parse_text",
    "parse_json",
    "to_json",
    "normalize",
    "check",
    "check_structure",
    "check_placement",
    "instances",
    "InstancePlacement",
    "EnsembleGraph",
    "EnsembleStep",
    "check_steps",
    "is_decoupled",
    "config_type",
    "v2_name",
    "numpy_dtype",
    "element_size",
]

"""A stand-in for TensorRT-LLM 1.2.1: names and arguments as its documentation has them, files as it writes them."""

from .checkpoints import AutoModelForCausalLM, Mapping
from .llm import LLM
from .sampling_params import SamplingParams

__version__ = "1.2.1"
__all__ = ["LLM", "AutoModelForCausalLM", "Mapping", "SamplingParams", "__version__"]

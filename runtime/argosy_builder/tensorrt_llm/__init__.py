"""TensorRT-LLM: a Hugging Face checkpoint becomes an engine, or a checkpoint that its newer path runs.

What may live here: `asked` (*pure*: a request and a model read as settings, and whether they fit), `checkpoints` (what
comes before an engine: the model's files, calibration, conversion, quantization), `engine` (`trtllm-build` and the
engine's own `config.json`), `causes` and `progress` (*pure*: what the tools' words mean), `running` (what answers for
the accuracy gate), and `builder`, which joins them.

Written against TensorRT-LLM 1.2.1 and its documented interfaces; its packages are imported in child processes alone.
"""

from .builder import TensorRtLlm

BUILDER = TensorRtLlm()

__all__ = ["BUILDER"]

"""TensorRT-LLM: a Hugging Face checkpoint becomes an engine, or a checkpoint that its newer path runs.

What may live here: `settings`, `architectures` and `compatibility` (*pure*: the settings of a request, and whether they
fit the model), `checkpoints` (the steps before an engine: files, calibration, conversion, quantization), `engine`
(`trtllm-build` and the engine's own `config.json`), `causes` and `progress` (*pure*: parse the tools' output),
`running` (runs the engine for the accuracy gate), and `builder`, which joins them.

Written against TensorRT-LLM 1.2.1 and its documented interfaces; its packages are imported in child processes alone.
"""

from .builder import TensorRtLlm

BUILDER = TensorRtLlm()

__all__ = ["BUILDER"]

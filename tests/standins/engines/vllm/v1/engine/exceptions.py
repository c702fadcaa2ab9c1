"""Exceptions of the engine."""

from vllm.exceptions import VLLMServerError


class EngineGenerateError(VLLMServerError):
    pass


class EngineDeadError(VLLMServerError):
    def __init__(self, *args, suppress_context=False, **kwargs):
        super().__init__("EngineCore encountered an issue.", *args, **kwargs)

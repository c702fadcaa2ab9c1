"""Parameters of an engine's server: the options that it reads when it serves, not when it is built."""

from collections.abc import Collection, Mapping
from typing import Any

from argosy.api.engine.engine import Builder, Engine
from argosy.render.config.engine_config import POD_REPOSITORY
from argosy_agent.contract.engine_options.tensorrt_llm import SERVING

TOKENIZER = "tokenizer"


def engine_parameters(engine: Engine, name: str, versions: Collection[int]) -> Mapping[str, str]:
    """Return the `parameters` of `config.pbtxt` for a model called `name`, as texts; none of what
    other backends serve.
    """
    if engine.builder is not Builder.TENSORRT_LLM or not versions:
        return {}
    parameters = {option: _text(value) for option, value in sorted(engine.options.items()) if option in SERVING}
    width = engine.options.get("max_beam_width")
    return {
        "tokenizer_dir": f"{POD_REPOSITORY}/{name}/{max(versions)}/{TOKENIZER}",
        **({} if width is None else {"max_beam_width": _text(width)}),
        **parameters,
    }


def _text(value: Any) -> str:
    """Return a value as the backend reads it: flags in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)

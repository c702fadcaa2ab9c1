"""A state as a text that fits into its ConfigMap. Pure.

A state that is too large is shortened: reasons are cut first, all to the same length; then the digests of models with a
reason are left out. The models that a plan places fit after that (`sizes`). With more models, some are left out
completely and counted: a reader must treat their states as unknown, not as absent.
"""

from dataclasses import replace

from .documents import AgentState, loaded_text_bytes, model_text_bytes, state_text
from .models import LoadedModel, RenderedRepository
from .sizes import DOCUMENT_BYTES, REASON_BYTES, text_bytes

LONGEST_REASON = 2000
"""Bytes, as JSON, of one reason at most."""
_LENGTHS = (LONGEST_REASON, 1000, 500, 250, 125, REASON_BYTES)


def fitting_text(state: AgentState, most: int = DOCUMENT_BYTES) -> str:
    """Return a state as JSON of at most `most` bytes."""
    if _size(text := state_text(state)) <= most:
        return text
    cut = replace(state, problem=shortened(state.problem, LONGEST_REASON))
    for length in _LENGTHS:
        cut = replace(cut, models=tuple(_cut(loaded, length) for loaded in state.models))
        if _size(text := state_text(cut)) <= most:
            return text
    cut = replace(cut, models=tuple(replace(loaded, digest=_digest(loaded)) for loaded in cut.models))
    return text if _size(text := state_text(cut)) <= most else state_text(_left_out(cut, most))


def shortened(text: str, most: int) -> str:
    """Return a text of at most `most` bytes as JSON, cut where it has more; `…` says that it was."""
    while (size := text_bytes(text)) > most:
        start = text.removesuffix("…")
        text = start[: min(len(start) - 1, len(start) * most // size)] + "…"
    return text


def _left_out(state: AgentState, most: int) -> AgentState:
    """Return the state with as many models as fit, by name, and the number of the others."""
    sizes: dict[str, int] = {}
    for loaded in state.models:
        sizes[loaded.model] = sizes.get(loaded.model, 0) + loaded_text_bytes(loaded)
    for model in state.applied.models:
        sizes[model.declared_name] = sizes.get(model.declared_name, 0) + model_text_bytes(model)
    bare = replace(state, models=(), applied=RenderedRepository(state.applied.server), left_out=len(sizes))
    left, named = most - _size(state_text(bare)), set[str]()
    for name in sorted(sizes):
        left -= sizes[name]
        if left < 0:
            break
        named.add(name)
    return replace(
        state,
        models=tuple(loaded for loaded in state.models if loaded.model in named),
        applied=replace(state.applied, models=tuple(m for m in state.applied.models if m.declared_name in named)),
        left_out=len(sizes) - len(named),
    )


def _cut(loaded: LoadedModel, most: int) -> LoadedModel:
    reason = shortened(loaded.reason, most)
    return loaded if reason is loaded.reason else replace(loaded, reason=reason)


def _digest(loaded: LoadedModel) -> str:
    return "" if loaded.reason else loaded.digest


def _size(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))

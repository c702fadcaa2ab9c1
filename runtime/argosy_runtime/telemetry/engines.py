"""Statistics of engines inside of models: backends that batch by themselves, token by token, as language models do."""

from collections.abc import Collection
from dataclasses import dataclass

from argosy_runtime.backends.contract import EngineState


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """All engines of a model version now. `cache`: share (0 to 1) of their caches in use, None where unknown."""

    waiting: int
    running: int
    cache: float | None


class EngineStatistics:
    """The last reported state of each instance, and the tokens of all instances. Counters never decrease."""

    def __init__(self) -> None:
        self._states: dict[str, EngineState] = {}
        self.prompt_tokens = 0
        self.generated_tokens = 0

    @property
    def any(self) -> bool:
        """Whether there is an engine at all."""
        return bool(self._states)

    def update(self, instance: str, state: EngineState) -> None:
        """Take the state that an instance's engine reports; its totals begin again with its process."""
        before = self._states.get(instance)
        self._states[instance] = state
        prompts, generated = max(state.prompt_tokens, 0), max(state.generated_tokens, 0)
        if before is not None and before.prompt_tokens <= prompts and before.generated_tokens <= generated:
            prompts, generated = prompts - before.prompt_tokens, generated - before.generated_tokens
        self.prompt_tokens += prompts
        self.generated_tokens += generated

    def load(self, instances: Collection[str]) -> EngineLoad:
        """Return the load of these instances, which are the living ones. States of others are dropped."""
        states = [state for name, state in self._states.items() if name in instances]
        caches = [state.cache for state in states if state.cache is not None and 0 <= state.cache <= 1]
        return EngineLoad(
            waiting=sum(max(state.waiting, 0) for state in states),
            running=sum(max(state.running, 0) for state in states),
            cache=sum(caches) / len(caches) if caches else None,
        )

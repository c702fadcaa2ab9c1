"""What engines inside of models tell: backends that batch by themselves, token by token, as language models do."""

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
    """By instance what each said last, and the tokens of all that ever were. Counters never go back."""

    def __init__(self) -> None:
        self._said: dict[str, EngineState] = {}
        self.prompt_tokens = 0
        self.generated_tokens = 0

    @property
    def any(self) -> bool:
        """Whether there is an engine at all."""
        return bool(self._said)

    def told(self, instance: str, state: EngineState) -> None:
        """An instance's engine says where it stands; its totals begin anew with its process."""
        before = self._said.get(instance)
        self._said[instance] = state
        prompts, generated = max(state.prompt_tokens, 0), max(state.generated_tokens, 0)
        if before is not None and before.prompt_tokens <= prompts and before.generated_tokens <= generated:
            prompts, generated = prompts - before.prompt_tokens, generated - before.generated_tokens
        self.prompt_tokens += prompts
        self.generated_tokens += generated

    def load(self, instances: Collection[str]) -> EngineLoad:
        """Of these instances, which are those that live; what a lost one said last is over."""
        states = [state for name, state in self._said.items() if name in instances]
        caches = [state.cache for state in states if state.cache is not None and 0 <= state.cache <= 1]
        return EngineLoad(
            waiting=sum(max(state.waiting, 0) for state in states),
            running=sum(max(state.running, 0) for state in states),
            cache=sum(caches) / len(caches) if caches else None,
        )

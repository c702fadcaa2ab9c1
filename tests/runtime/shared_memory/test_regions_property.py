"""Any order of registrations, requests and ends: regions are there as long as in Triton, and closed exactly once."""

from dataclasses import dataclass

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from tests.runtime.shared_memory.memories import Memories, PlayedMemory

from argosy_runtime.errors import ServingError
from argosy_runtime.shared_memory.regions import ClientRegions, Region, RegionKind

NAMES = st.sampled_from(["a", "b", "c"])
KINDS = st.sampled_from(list(RegionKind))
SIZE = 8


@dataclass
class State:
    """What the model knows of a region."""

    kind: RegionKind
    users: int = 0
    leaving: bool = False


class RegionsMachine(RuleBasedStateMachine):
    """The regions against a model, by name."""

    used = Bundle("used")

    def __init__(self) -> None:
        super().__init__()
        self.memories = Memories()
        self.regions = ClientRegions(self.memories.open_system, self.memories.open_cuda, allowed=True)
        self.there: dict[str, State] = {}
        self.ever: list[PlayedMemory] = []

    @rule(name=NAMES, kind=KINDS)
    def register(self, name: str, kind: RegionKind) -> None:
        if name in self.there:
            with pytest.raises(ServingError, match="already in manager"):
                self._register(name, kind)
            return
        self._register(name, kind)
        self.there[name] = State(kind)
        self.ever.append(self.memories.opened[name])

    def _register(self, name: str, kind: RegionKind) -> None:
        if kind is RegionKind.SYSTEM:
            self.regions.register_system(name, f"/{name}", 0, SIZE)
        else:
            self.regions.register_cuda(name, bytes(64), 0, SIZE)

    @rule(name=st.one_of(NAMES, st.just("")), kind=KINDS)
    def unregister(self, name: str, kind: RegionKind) -> None:
        self.regions.unregister(kind, name)
        for region, state in list(self.there.items()):
            if name in ("", region) and state.kind is kind:
                state.leaving = True
                self._forget_unused(region)

    @rule(target=used, name=NAMES)
    def use(self, name: str) -> Region | None:
        if name not in self.there:
            with pytest.raises(ServingError, match="Unable to find"):
                self.regions.use(name, 0, SIZE)
            return None
        self.there[name].users += 1
        return self.regions.use(name, 0, SIZE)

    @rule(region=consumes(used))
    def end_use(self, region: Region | None) -> None:
        if region is None:
            return
        assert len(region.read(0, SIZE)) == SIZE
        self.regions.end_use(region)
        self.there[region.name].users -= 1
        self._forget_unused(region.name)

    @invariant()
    def agrees_with_the_model(self) -> None:
        for kind in RegionKind:
            listed = [region.name for region in self.regions.status(kind)]
            assert listed == sorted(name for name, state in self.there.items() if state.kind is kind)
        assert sum(not memory.closed for memory in self.ever) == len(self.there)
        assert all(memory.closed <= 1 for memory in self.ever)

    def _forget_unused(self, name: str) -> None:
        if self.there[name].leaving and not self.there[name].users:
            del self.there[name]


TestRegions = RegionsMachine.TestCase

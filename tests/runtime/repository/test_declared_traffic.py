"""Whatever order loads end in, requests are divided as the newest one declares."""

from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.modelconfig.parameters.traffic import MILLIONTHS, VersionTraffic
from argosy_runtime.repository.records import ModelRecord
from argosy_runtime.repository.traffic.declared import DeclaredTraffic

divisions = st.none() | st.integers(0, MILLIONTHS).map(lambda one: VersionTraffic({1: one, 2: MILLIONTHS - one}))


@given(st.lists(divisions, min_size=1, max_size=8), st.data())
def test_an_earlier_load_that_ends_later_does_not_bring_its_weights_back(declarations, data):
    """Weights that a load declares apply when it begins and when it ends; that it declares none, when it ends."""
    record = ModelRecord("m")
    begun: list[DeclaredTraffic] = []
    waiting = [DeclaredTraffic(number, traffic) for number, traffic in enumerate(declarations, 1)]
    while waiting or begun:
        if waiting and (not begun or data.draw(st.booleans())):
            declared = waiting.pop(0)
            begun.append(declared)
            if declared.traffic is not None:
                record.declare(declared)
                record.divide()
                assert record.split is not None
                assert record.split.traffic == declared.traffic, "at once"
        else:
            ended = begun.pop(data.draw(st.integers(0, len(begun) - 1)))
            record.declare(ended)
            record.divide()
    newest = declarations[-1]
    assert (None if record.split is None else record.split.traffic) == newest

"""What is remembered is a value: to change it is to make another one."""

from dataclasses import fields, replace
from datetime import UTC, datetime

import pytest

from argosy.fleet.scaling.capacity.service import Service
from argosy.fleet.scaling.learning.memory import Memory, changed

BEFORE = Memory(at=datetime(2026, 1, 1, tzinfo=UTC), service=Service(0.1, 0.01), rows=2.0, returns=(3.0,))


@pytest.mark.parametrize("field", [each.name for each in fields(Memory)])
def test_a_changed_memory_is_another_one_that_differs_in_that_field_alone(field):
    kept = replace(BEFORE)
    after = changed(BEFORE, **{field: "another"})
    assert after == replace(BEFORE, **{field: "another"}) != BEFORE == kept
    assert hash(changed(BEFORE, at=BEFORE.at)) == hash(BEFORE)


def test_nothing_changes_a_memory_in_place():
    with pytest.raises(AttributeError, match="cannot assign"):
        changed(BEFORE, rows=3.0).rows = 4.0

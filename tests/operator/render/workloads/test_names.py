"""Names: always what Kubernetes takes, and different for different resources."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from argosy.api.values.meta import SUBDOMAIN
from argosy.render.names import (
    label,
    object_name,
    pool_service_name,
    revision_name,
    service_name,
    state_name,
    volume_name,
)

DNS_1035 = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
DNS_1123 = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")
SERVER_NAME = re.compile(SUBDOMAIN)

plain = st.from_regex(SUBDOMAIN, fullmatch=True).filter(lambda name: len(name) <= 253)
long = st.builds(
    lambda start, middle, end: f"{start}{middle}{end}",
    st.sampled_from(["a", "9", "a-", "a.b-", "model"]),
    st.sampled_from(["-" * 50, "b" * 48, "b" * 49 + ".c", "b.c-" * 14, "x" * 200, "1234567890-" * 5]),
    st.sampled_from(["d", ".d", "-0123456789", "-pool", "e", "0"]),
).filter(lambda name: re.fullmatch(SUBDOMAIN, name) is not None)
# What another name could become is a name too, and the likeliest to be taken for it.
derived = st.builds(lambda name, of: of(name), st.one_of(plain, long), st.sampled_from([label, service_name]))
names = st.one_of(plain, long, derived, derived.map(lambda name: f"{name}-pool"))


@given(names)
def test_every_name_is_what_kubernetes_takes(name: str) -> None:
    assert LABEL_VALUE.fullmatch(label(name))
    assert len(object_name(name)) <= 63
    for item in (object_name(name), state_name(name), revision_name(name, "0" * 64)):
        assert SERVER_NAME.fullmatch(item)
    for item in (service_name(name), pool_service_name(name)):
        assert DNS_1035.fullmatch(item)
    assert DNS_1123.fullmatch(volume_name(name))


@given(names, names)
@example("a.b", "a-b")
@example("9", "m-9")
@example("b" * 51 + "-" + "c" * 20, "b" * 51 + "." + "c" * 20)
@example(label("b" * 100), "b" * 100)
@example(service_name("a.b"), "a.b")
def test_different_names_stay_different(one: str, other: str) -> None:
    if one != other:
        assert label(one) != label(other)
        assert service_name(one) != service_name(other)
        assert pool_service_name(one) != pool_service_name(other)
        assert volume_name(one) != volume_name(other)
        assert state_name(one) != state_name(other)
    assert service_name(one) != pool_service_name(other)
    assert object_name(one) != state_name(other) or one.endswith("-state")


@given(names, st.integers(0, 10**6), names, st.integers(0, 10**6))
def test_a_servers_objects_are_never_anothers_state(one: str, n: int, other: str, m: int) -> None:
    """Servers end in a number: `pool-0`."""
    mine = object_name(f"{one}-{n}")
    assert mine != state_name(f"{other}-{m}")


@pytest.mark.parametrize("name", ["bert", "a", "llama-3-8b", "x" * 63, "pool", "state"])
def test_a_name_that_fits_is_retained(name: str) -> None:
    assert (label(name), service_name(name), object_name(name)) == (name, name, name)


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [("llama-3.1", "llama-3-1-"), ("2step", "m-2step-"), ("x-pool", "x-pool-"), ("y" * 64, "y" * 52 + "-")],
)
def test_another_name_can_still_be_read(name: str, cleaned: str) -> None:
    assert service_name(name).startswith(cleaned)
    assert len(service_name(name)) == len(cleaned) + 10


def test_a_pools_service_is_the_pools_name_with_an_ending() -> None:
    assert pool_service_name("assistants") == "assistants-pool"
    assert re.fullmatch(r"p{47}-[0-9a-f]{10}-pool", pool_service_name("p" * 59))

"""Properties of every interruption, every set of spans and every use of a bounded cache."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.properties import examples

from argosy_agent.cache.entries import Entry, evicted
from argosy_agent.cache.storage import Storage
from argosy_agent.transfer.errors import StorageError
from argosy_agent.transfer.flow import Retry
from argosy_agent.transfer.journal import length, merged, missing

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)))
SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
AT_ONCE = Retry(tries=1)


@contextmanager
def folder() -> Iterator[Path]:
    """Yield an empty folder for one example."""
    path = Path(tempfile.mkdtemp())
    try:
        yield path
    finally:
        shutil.rmtree(path)


@examples(40, suppress_health_check=SHARED)
@given(
    body=st.binary(min_size=1, max_size=400),
    cuts=st.lists(st.integers(0, 120), max_size=8),
    part=st.integers(20, 500),
    etag=st.booleans(),
)
def test_interrupted_anywhere_the_bytes_are_the_same(
    shared_site: Any, body: bytes, cuts: list[int], part: int, etag: bool
) -> None:
    """Each cut ends a process's only try; the next process goes on from what it left."""
    shared_site.files, shared_site.cuts = {"/m": body}, list(cuts)
    shared_site.marks = {} if etag else {"/m": ""}
    with folder() as cache:
        for _ in range(len(cuts) + 1):
            try:
                copy = Storage(cache, part=part, retry=AT_ONCE).fetch(f"{shared_site.url}/m")
            except StorageError:
                assert not list(cache.glob("remote-*"))
            else:
                assert (copy / "m").read_bytes() == body
                return
        raise AssertionError("it never came whole")


@given(spans=SPANS, size=st.integers(0, 60), part=st.integers(1, 20))
def test_what_is_missing_is_what_is_not_here(spans: list[tuple[int, int]], size: int, part: int) -> None:
    here = {at for start, end in spans for at in range(start, end)}
    parts = list(missing(spans, size, part))
    absent = [at for start, end in parts for at in range(start, end)]
    assert absent == sorted(set(range(size)) - here)
    assert all(0 < end - start <= part for start, end in parts)
    assert length(spans) == len(here)
    assert all(before[1] < after[0] for before, after in zip(merged(spans), merged(spans)[1:], strict=False))


ENTRIES = st.lists(
    st.builds(Entry, st.uuids().map(str), st.integers(0, 9), st.floats(0, 9), st.booleans()), unique_by=lambda e: e.name
)


@given(entries=ENTRIES, excess=st.integers(-5, 40))
def test_what_goes_is_enough_and_the_least_recently_used(entries: list[Entry], excess: int) -> None:
    gone = evicted(entries, excess)
    may = [entry for entry in entries if not entry.stays and entry.size]
    if gone is None:
        assert sum(item.size for item in may) < excess
        return
    freed = sum(item.size for item in gone)
    assert freed >= excess
    assert not gone or freed - gone[-1].size < excess
    left = [item for item in may if item not in gone]
    assert all(out.used_at <= item.used_at for out in gone for item in left)
    assert not any(item.stays for item in gone)


@examples(25, suppress_health_check=SHARED)
@given(steps=st.lists(st.tuples(st.integers(1, 6), st.sets(st.integers(1, 6))), max_size=12))
def test_a_bounded_cache_stays_within_its_size_and_keeps_what_is_served(
    shared_site: Any, steps: list[tuple[int, set[int]]]
) -> None:
    """Model n has 100 bytes n times over, the cache 1000. Each step serves a set and fetches one more."""
    shared_site.cuts, shared_site.marks = [], {}
    shared_site.files = {f"/{n}": bytes([n]) * (n * 100) for n in range(1, 7)}
    with folder() as cache:
        storage = Storage(cache, 1000)
        urls = {n: f"{shared_site.url}/{n}" for n in range(1, 7)}
        keys = {n: storage.key(url) for n, url in urls.items()}
        for number, served in steps:
            storage.keep([keys[n] for n in served])
            retained = {n for n in served if (cache / keys[n]).is_dir()}
            fits = sum(n for n in retained | {number}) <= 10
            try:
                copy = storage.fetch(urls[number])
            except StorageError:
                assert not fits
            else:
                assert (copy / str(number)).read_bytes() == shared_site.files[f"/{number}"]
            here = {n for n in keys if (cache / keys[n]).is_dir()}
            assert retained <= here
            assert sum(here) <= 10

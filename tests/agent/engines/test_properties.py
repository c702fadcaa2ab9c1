"""For any files and any manifest: what was kept is what comes back."""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.properties import examples

from argosy_agent.contract.builds import AccuracyReport, DataSource, ModelShape
from argosy_agent.engines.manifest import EngineFile, Manifest, manifest_text, parse_manifest
from argosy_agent.transfer.localfiles import digest_of, digest_of_hexes

from .making import KEY, listing, manifest, open_at, write

LETTERS = st.characters(exclude_categories=("C", "Z"), exclude_characters="/")
NAMES = st.text(LETTERS, min_size=1, max_size=12).filter(
    lambda name: not name.startswith(".") and len(name.encode()) < 60
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
HEX = st.text("0123456789abcdef", min_size=1, max_size=64)
COUNT = st.integers(0, 2**40)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def is_a_tree(files: dict[str, bytes]) -> bool:
    """Return whether no file is also a folder."""
    return not any(other.startswith(f"{name}/") for name in files for other in files)


@examples(40)
@given(st.dictionaries(PATHS, st.binary(max_size=300), min_size=1, max_size=6).filter(is_a_tree))
def test_files_come_back_as_they_were(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        store = open_at(f"file:{base}/engines", base)
        published = store.publish(KEY, write(base / "built", files), manifest())
        assert store.lookup(KEY) == published
        store.fetch(KEY, base / "copy")
        assert listing(base / "copy") == files
        assert published.digest == digest_of(base / "built")


@given(st.dictionaries(PATHS, HEX, min_size=1, max_size=6))
def test_a_digest_does_not_depend_on_the_order(files: dict[str, str]) -> None:
    assert digest_of_hexes(files) == digest_of_hexes(dict(reversed(files.items())))


ACCURACY = st.builds(
    AccuracyReport,
    metric=TEXT,
    value=FLOATS,
    passed=st.booleans(),
    samples=COUNT,
    data_digest=TEXT,
    at=TEXT.filter(bool),
    baseline=st.none() | FLOATS,
    delta=st.none() | FLOATS,
    minimum=st.none() | FLOATS,
    details=st.dictionaries(TEXT, FLOATS, max_size=3),
)
SHAPE = st.builds(ModelShape, **dict.fromkeys(ModelShape.__dataclass_fields__, COUNT))
JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
MANIFEST = st.builds(
    Manifest,
    key=TEXT,
    builder=TEXT,
    precision=TEXT,
    architecture=TEXT,
    compiler=TEXT,
    model=st.builds(DataSource, st.just("s3://bucket/model"), TEXT),
    options=st.dictionaries(TEXT, JSON, max_size=3),
    created=TEXT,
    accuracy=st.none() | ACCURACY,
    shape=st.none() | SHAPE,
    attempt=HEX,
    digest=TEXT.filter(bool),
    files=st.lists(st.builds(EngineFile, PATHS, COUNT, HEX, TEXT), min_size=1, max_size=4).map(tuple),
    uri=st.just(""),
)


@given(MANIFEST.filter(lambda item: item.key))
def test_a_manifest_is_read_as_it_was_written(item: Manifest) -> None:
    result = parse_manifest(manifest_text(item), "s3://bucket/engines/key/")
    assert result.uri == f"s3://bucket/engines/key/{item.attempt}"
    assert manifest_text(result) == manifest_text(item)
    assert (result.files, result.accuracy, result.shape, result.options) == (
        item.files,
        item.accuracy,
        item.shape,
        item.options,
    )

"""What `argosy up` acts upon of manifests of which some are wrong."""

from pathlib import Path

import pytest

from argosy.api.documents import Resource
from argosy.local.manifests.reading import read_manifests
from argosy.local.manifests.source import ActiveManifests, activate

POOL = "apiVersion: argosy.dev/v1alpha1\nkind: ServingPool\nmetadata: {name: pool}\n"


def model(name: str, version: int = 1, field: str = "version") -> str:
    return f"""---
apiVersion: argosy.dev/v1alpha1
kind: InferenceModel
metadata: {{name: {name}}}
spec: {{poolRef: {{name: pool}}, modelFormat: {{name: python}}, {field}: {version}, storageUri: s3://b/m}}
"""


def taken(folder: Path, before: ActiveManifests, **files: str) -> ActiveManifests:
    """Return what is read of these files, which are all that the folder contains."""
    for old in folder.glob("*.yaml"):
        old.unlink()
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return activate(read_manifests(folder), before)


def versions(result: ActiveManifests) -> dict[str, int]:
    return {resource.name: _version(resource) for resource in result.resources if resource.kind == "InferenceModel"}


def _version(resource: Resource) -> int:
    assert resource.kind == "InferenceModel"
    return resource.spec.default_version


def test_a_wrong_manifest_holds_back_no_other(tmp_path: Path) -> None:
    result = taken(tmp_path, ActiveManifests(), pool=POOL, a=model("a"), b=model("b", field="verison"))
    assert versions(result) == {"a": 1}
    assert [problem.path for problem in result.problems] == ["spec.verison", "spec.version"]


def test_what_is_wrong_stays_as_it_was_while_others_change(tmp_path: Path) -> None:
    first = taken(tmp_path, ActiveManifests(), pool=POOL, a=model("a"), b=model("b"))
    second = taken(tmp_path, first, pool=POOL, a=model("a", 2), b=model("b", 2, "verison"), c=model("c"))
    assert versions(second) == {"a": 2, "b": 1, "c": 1}
    assert second.faulty == ()
    mended = taken(tmp_path, second, pool=POOL, a=model("a", 2), b=model("b", 3))
    assert versions(mended) == {"a": 2, "b": 3}
    assert mended.problems == ()


def test_a_file_that_cannot_be_read_takes_away_nothing_that_it_declared(tmp_path: Path) -> None:
    first = taken(tmp_path, ActiveManifests(), pool=POOL, a=model("a") + model("b"), c=model("c"))
    second = taken(tmp_path, first, pool=POOL, a=model("a", 2) + "---\nspec: [")
    assert versions(second) == {"a": 2, "b": 1}
    moved = taken(tmp_path, second, pool=POOL, a="spec: [", c=model("b", 4))
    assert versions(moved) == {"a": 2, "b": 4}


def test_a_wrong_name_or_kind_takes_away_nothing(tmp_path: Path) -> None:
    first = taken(tmp_path, ActiveManifests(), pool=POOL, a=model("a"), b=model("b"))
    named = taken(tmp_path, first, pool=POOL, a=model("A_"), b=model("b"))
    assert versions(named) == {"a": 1, "b": 1}
    kind = taken(tmp_path, named, pool=POOL, a=model("a").replace("InferenceModel", "InferenceModell"), b=model("b"))
    assert versions(kind) == {"a": 1, "b": 1}
    renamed = taken(tmp_path, kind, pool=POOL, a=model("c"), b=model("b"))
    assert versions(renamed) == {"b": 1, "c": 1}


@pytest.mark.parametrize(("a", "b"), [("a", "a"), ("b", "b")])
def test_the_name_of_another_resource_takes_away_nothing(tmp_path: Path, a: str, b: str) -> None:
    first = taken(tmp_path, ActiveManifests(), pool=POOL, a=model("a"), b=model("b"))
    repeated = taken(tmp_path, first, pool=POOL, a=model(a), b=model(b))
    assert versions(repeated) == {"a": 1, "b": 1}
    assert versions(taken(tmp_path, repeated, pool=POOL, a=model("a"))) == {"a": 1}


def test_what_leaves_a_file_with_an_old_problem_is_removed(tmp_path: Path) -> None:
    first = taken(tmp_path, ActiveManifests(), pool=POOL, a=model("a") + model("b"))
    second = taken(tmp_path, first, pool=POOL, a=model("a", field="verison"))
    assert versions(second) == {"a": 1}


def test_of_two_with_one_name_neither_is_new(tmp_path: Path) -> None:
    twice = taken(tmp_path, ActiveManifests(), pool=POOL, a=model("a"), b=model("a", 2))
    assert versions(twice) == {}
    assert [item.identity for item in twice.faulty] == ["InferenceModel default/a"]
    once = taken(tmp_path, twice, pool=POOL, a=model("a"))
    assert versions(taken(tmp_path, once, pool=POOL, a=model("a"), b=model("a", 2))) == {"a": 1}

"""Names of models in namespaces: what a client's name means, and what a step's."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.execution.shadow.comparing import ComparisonWork
from argosy_runtime.repository.folders.layout import ModelFolder
from argosy_runtime.repository.folders.repositories import Repositories, RepositoryModels
from argosy_runtime.repository.namespaces import NamedModels
from argosy_runtime.repository.records import ModelRecord

NAMES, NAMESPACES = ("a", "b"), ("/one", "/two", "/three")


def folder(namespace: str, name: str) -> ModelFolder:
    return ModelFolder(name, Path(namespace, name), "", (1,), {1: ()}, "", namespace=namespace)


def loaded(models: NamedModels, namespace: str, name: str) -> ModelRecord:
    record = models.add(folder(namespace, name))
    models.desire(record, True)
    return record


def test_without_namespaces_an_identifier_is_the_name() -> None:
    models = NamedModels(False, ComparisonWork())
    record = loaded(models, "", "a")
    assert models.by_name is models.records
    assert (models.identifier("a"), models.identifier("none")) == ("a", "none")
    assert models.seen_from("")["a"] is record
    assert models.means_one("none")


def test_what_the_names_of_clients_mean() -> None:
    models = NamedModels(True, ComparisonWork())
    one, two = loaded(models, "/one", "a"), loaded(models, "/two", "a")
    with pytest.raises(ServingError, match="There are 2 identifiers of model 'a' in global map, model nam") as caught:
        models.identifier("a")
    assert caught.value.kind is ErrorKind.INVALID_ARG
    with pytest.raises(ServingError, match="Request for unknown model: 'b' is not found") as caught:
        models.identifier("b")
    assert caught.value.kind is ErrorKind.INVALID_ARG
    models.desire(one, False)
    assert models.identifier("a") == "/two::a"
    assert models.by_name == {"a": two}
    models.desire(two, False)
    with pytest.raises(ServingError, match="Identifier of model 'a' is not found in global map") as caught:
        models.identifier("a")
    assert caught.value.kind is ErrorKind.NOT_FOUND
    assert not models.means_one("a")


def test_a_step_means_the_model_of_its_namespace_first() -> None:
    models = NamedModels(True, ComparisonWork())
    one, two = loaded(models, "/one", "a"), loaded(models, "/two", "a")
    assert (models.seen_from("/one")["a"], models.seen_from("/two")["a"]) == (one, two)
    assert "a" not in models.seen_from("/three")
    models.desire(one, False)
    assert models.seen_from("/one")["a"] is models.seen_from("/three")["a"] is two


@given(st.lists(st.tuples(st.sampled_from(NAMESPACES), st.sampled_from(NAMES), st.booleans())))
def test_a_name_means_the_only_loaded_model_whatever_came_before(
    changes: list[tuple[str, str, bool]],
) -> None:
    models = NamedModels(True, ComparisonWork())
    desired: dict[tuple[str, str], bool] = {}
    for namespace, name, loads in changes:
        models.desire(models.add(folder(namespace, name)), loads)
        desired[namespace, name] = loads
    for name in NAMES:
        there = [namespace for (namespace, other), loads in desired.items() if other == name and loads]
        assert models.means_one(name) == (len(there) == 1)
        if len(there) == 1:
            assert models.identifier(name) == f"{there[0]}::{name}" == models.by_name[name].identifier
        for namespace in NAMESPACES:
            meant = models.meant_by_step(namespace, name)
            if namespace in there:
                assert meant is not None
                assert meant.namespace == namespace
            elif len(there) > 1:
                assert meant is None or not meant.desired
            elif there:
                assert meant is not None
                assert meant.namespace == there[0]


async def test_repositories_that_are_namespaces(tmp_path: Path) -> None:
    for namespace in ("one", "two"):
        (tmp_path / namespace / "m" / "1").mkdir(parents=True)
    paths = [tmp_path / "one", tmp_path / "two", tmp_path / "one"]
    repositories = Repositories(paths, namespaces=True)
    identifiers = [f"{tmp_path}/one::m", f"{tmp_path}/two::m"]
    assert list(repositories.scan()) == identifiers
    assert all(one.problem is None for one in repositories.scan().values())
    assert [one.identifier for one in repositories.named("m")] == identifiers
    assert await repositories.models() == RepositoryModels(dict.fromkeys(identifiers, "m"))
    (refused,) = Repositories(paths).named("m")
    assert refused.problem == "model appears in two or more repositories"
    assert await Repositories(paths).models() == RepositoryModels({"m": "m"}, frozenset({"m"}))

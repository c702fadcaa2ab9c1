"""A release from its beginning to its end: installed, upgraded, put back, uninstalled, installed again."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from e2e.cluster import Cluster
from e2e.cluster.waiting import wait_for
from tests.chart.conftest import CHART, Release, established

CRDS = ("servingpools.argosy.dev", "inferencemodels.argosy.dev", "ensembles.argosy.dev")
POOL = """
apiVersion: argosy.dev/v1alpha1
kind: ServingPool
metadata: {name: main, namespace: default}
spec: {runtime: {name: argosy}}
"""


@pytest.fixture(autouse=True)
def _without_crds(cluster: Cluster) -> Iterator[None]:
    cluster.kubectl("delete", "crd", *CRDS, "--ignore-not-found")
    yield
    cluster.kubectl("delete", "crd", *CRDS, "--ignore-not-found")


def _crds(cluster: Cluster) -> set[str]:
    return set(CRDS) & set(cluster.kubectl("get", "crd", "-o", "name").replace("/", " ").split())


def _use(cluster: Cluster) -> None:
    """Make a resource, as people do."""
    established(cluster, *CRDS)
    cluster.apply(POOL)


def test_uninstalling_leaves_the_crds_and_all_resources_alone(release: Release, cluster: Cluster) -> None:
    release.install({})
    assert _crds(cluster) == set(CRDS)
    _use(cluster)
    release.uninstall()
    assert _crds(cluster) == set(CRDS)
    assert cluster.read("servingpool", "main")["metadata"]["name"] == "main"
    label = ("-l", f"app.kubernetes.io/part-of=argosy,app.kubernetes.io/instance={release.name}")
    kinds = "deployments,services,serviceaccounts,roles,rolebindings,poddisruptionbudgets,secrets"
    wait_for("the garbage collector", lambda: not cluster.kubectl("get", kinds, "-n", release.namespace, *label), 60)
    names = cluster.kubectl("get", "clusterroles,clusterrolebindings", "-o", "name")
    assert f"{release.namespace}:" not in names


def test_what_was_retained_is_taken_up_by_the_next_install(release: Release, cluster: Cluster) -> None:
    release.install({})
    _use(cluster)
    before = cluster.read("servingpool", "main")["metadata"]["uid"]
    release.uninstall()
    release.install({})
    assert cluster.read("servingpool", "main")["metadata"]["uid"] == before


def test_crds_go_with_the_release_where_they_are_not_to_be_retained(release: Release, cluster: Cluster) -> None:
    release.install({"crds": {"keep": False}})
    release.uninstall()
    wait_for("the CRDs' end", lambda: not _crds(cluster), 60)


def test_an_upgrade_brings_newer_crds_and_a_rollback_the_former_ones(
    release: Release, cluster: Cluster, tmp_path: Path
) -> None:
    release.install({})
    newer = Path(shutil.copytree(CHART, tmp_path / "argosy"))
    crd = newer / "files/crds/argosy.dev_servingpools.yaml"
    crd.write_text(crd.read_text().replace("shortNames:\n", "shortNames:\n    - newer\n"))
    release.chart = newer
    release.upgrade({"replicas": 3})
    assert "newer" in cluster.read("crd", CRDS[0])["spec"]["names"]["shortNames"]
    assert cluster.read("deployment", "argosy", "-n", release.namespace)["spec"]["replicas"] == 3
    release.chart = CHART
    release.upgrade({})
    assert cluster.read("deployment", "argosy", "-n", release.namespace)["spec"]["replicas"] == 2
    assert "newer" not in cluster.read("crd", CRDS[0])["spec"]["names"]["shortNames"]


@pytest.mark.parametrize("annotated", [False, True], ids=["without annotations", "with annotations"])
def test_crds_say_all_that_their_files_say(releases: Callable[..., Release], tmp_path: Path, annotated: bool) -> None:
    chart = Path(shutil.copytree(CHART, tmp_path / "argosy"))
    for path in (chart / "files/crds").iterdir():
        body = yaml.safe_load(path.read_text())
        body["metadata"] = {"name": body["metadata"]["name"]} | ({"annotations": {"a": "b"}} if annotated else {})
        path.write_text(yaml.safe_dump(body, sort_keys=False))
    rendered = [body for body in releases(chart=chart).install({}) if body["kind"] == "CustomResourceDefinition"]
    files = {name: CHART / f"files/crds/argosy.dev_{name.split('.')[0]}.yaml" for name in CRDS}
    for body in rendered:
        metadata = body["metadata"]
        assert body["spec"] == yaml.safe_load(files[metadata["name"]].read_text())["spec"]
        assert metadata["annotations"] == {"helm.sh/resource-policy": "keep"} | ({"a": "b"} if annotated else {})
        assert metadata["labels"]["app.kubernetes.io/part-of"] == "argosy"
    assert {body["metadata"]["name"] for body in rendered} == set(CRDS)

"""The operator may do what it does and nothing else, as the API server itself judges."""

import functools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from e2e.cluster import Access, Cluster
from e2e.cluster.waiting import wait_for
from tests.chart.conftest import CHART, WITHOUT_CRDS, Release, established

Right = tuple[str, str, str, str]
"""Group, resource, verb, and the one object's name, or nothing for all."""

KINDS = ("inferencemodels", "ensembles", "servingpools")
READ = ("get", "list", "watch")
OWN = (*READ, "create", "patch", "delete")


def _rights(group: str, resources: tuple[str, ...], verbs: tuple[str, ...], name: str = "") -> set[Right]:
    return {(group, resource, verb, name) for resource in resources for verb in verbs}


IN_A_NAMESPACE = (
    _rights("argosy.dev", KINDS, READ)
    | _rights("argosy.dev", tuple(f"{kind}/status" for kind in KINDS), ("patch",))
    | _rights("apps", ("deployments", "controllerrevisions"), OWN)
    | _rights("batch", ("jobs",), OWN)
    | _rights("", ("services", "serviceaccounts"), OWN)
    | _rights("", ("configmaps",), (*OWN, "update"))
    | _rights("rbac.authorization.k8s.io", ("roles", "rolebindings"), OWN)
    | _rights("networking.k8s.io", ("networkpolicies",), OWN)
    | _rights("policy", ("poddisruptionbudgets",), OWN)
    | _rights("inference.networking.k8s.io", ("inferencepools",), OWN)
    | _rights("resource.k8s.io", ("resourceclaimtemplates",), OWN)
    | _rights("", ("pods",), (*READ, "patch"))
    | _rights("", ("pods/status",), ("patch",))
    | _rights("", ("events",), ("create", "patch"))
)
OF_THE_CLUSTER = (
    _rights("", ("nodes",), READ)
    | _rights("", ("pods",), ("list", "watch"))
    | _rights("resource.k8s.io", ("resourceslices", "resourceclaims", "devicetaintrules"), ("list", "watch"))
    | _rights("apiextensions.k8s.io", ("customresourcedefinitions",), READ)
)
NAMESPACES = _rights("", ("namespaces",), READ)
THE_LEASE = _rights("coordination.k8s.io", ("leases",), ("get", "watch", "update"), "argosy") | _rights(
    "coordination.k8s.io", ("leases",), ("create",)
)

AGENTS_ROLE = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: server, namespace: %s}
rules:
  - {apiGroups: [""], resources: [configmaps], resourceNames: [server], verbs: [get, list, watch]}
  - {apiGroups: [""], resources: [configmaps], resourceNames: [server-state], verbs: [get, patch, update]}
"""
AGENTS_BINDING = """
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: server, namespace: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: server}
subjects: [{kind: ServiceAccount, name: default}]
"""
TOO_MUCH = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: greedy, namespace: %s}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]
"""


@pytest.fixture
def kinds(cluster: Cluster) -> Iterator[None]:
    """Install Argosy's kinds: kubectl knows no others."""
    names = [f"{kind}.argosy.dev" for kind in KINDS]
    for path in (CHART / "files/crds").iterdir():
        cluster.apply(path.read_text())
    established(cluster, *names)
    yield
    cluster.kubectl("delete", "crd", *names)


def _namespaces(cluster: Cluster) -> set[str]:
    return {namespace["metadata"]["name"] for namespace in cluster.read("namespaces")["items"]}


@pytest.fixture
def other_namespace(cluster: Cluster) -> Iterator[str]:
    """Yield a namespace that belongs to no release."""
    cluster.kubectl("create", "namespace", "elsewhere")
    yield "elsewhere"
    cluster.kubectl("delete", "namespace", "elsewhere", "--wait=false")
    wait_for("the namespace's end", lambda: "elsewhere" not in _namespaces(cluster), 60)


@pytest.fixture
def operator(release: Release, cluster: Cluster) -> Callable[[dict[str, Any]], Access]:
    """Return a function that installs the chart and returns the operator's access."""

    def install(values: dict[str, Any]) -> Access:
        release.install({**WITHOUT_CRDS, "replicas": 0, **values})
        return cluster.as_user(cluster.service_account_kubeconfig(release.namespace, "argosy"))

    return install


def _has(access: Access, namespace: str) -> set[Right]:
    """Return the rights that the API server reports for this user there, beyond those that every user has."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    answer = json.loads(access.kubectl("create", "-o", "json", "-f", "-", stdin=json.dumps(review)))
    return {
        (group, resource, verb, name)
        for rule in answer["status"]["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames") or [""]
        if group != "authorization.k8s.io"
    }


def test_it_may_do_in_every_namespace_what_it_does_there_and_no_more(
    operator: Callable[..., Access], release: Release, other_namespace: str
) -> None:
    access = operator({})
    everywhere = IN_A_NAMESPACE | OF_THE_CLUSTER | NAMESPACES
    wait_for("RBAC", lambda: _has(access, other_namespace) == everywhere, 30)
    assert _has(access, release.namespace) == everywhere | THE_LEASE


def test_of_secrets_it_may_read_those_that_are_listed(
    operator: Callable[..., Access], release: Release, other_namespace: str
) -> None:
    access = operator({"rbac": {"secretNames": ["prometheus", "mimir.login"]}})
    secrets = _rights("", ("secrets",), ("get",), "prometheus") | _rights("", ("secrets",), ("get",), "mimir.login")
    everywhere = IN_A_NAMESPACE | OF_THE_CLUSTER | NAMESPACES | secrets
    wait_for("RBAC", lambda: _has(access, other_namespace) == everywhere, 30)
    assert access.kubectl_process("get", "secrets", "-n", other_namespace).returncode != 0


def test_limited_to_namespaces_it_has_its_rights_in_those_alone(
    operator: Callable[..., Access], release: Release, cluster: Cluster, other_namespace: str
) -> None:
    access = operator({"watchNamespaces": ["default"]})
    wait_for("RBAC", lambda: _has(access, "default") == IN_A_NAMESPACE | OF_THE_CLUSTER, 30)
    assert _has(access, other_namespace) == OF_THE_CLUSTER
    assert _has(access, release.namespace) == OF_THE_CLUSTER | THE_LEASE
    assert access.kubectl_process("get", "configmaps", "-n", other_namespace).returncode != 0
    assert access.kubectl_process("get", "configmaps", "-A").returncode != 0


FORBIDDEN = (
    ("get", "secrets"),
    ("update", "deployments.apps"),
    ("update", "controllerrevisions.apps"),
    ("update", "servingpools.argosy.dev"),
    ("patch", "inferencemodels.argosy.dev"),
    ("delete", "ensembles.argosy.dev"),
    ("update", "inferencemodels.argosy.dev/finalizers"),
    ("create", "pods"),
    ("delete", "pods"),
    ("create", "pods/exec"),
    ("create", "serviceaccounts/token"),
    ("create", "statefulsets.apps"),
    ("update", "jobs.batch"),
    ("create", "cronjobs.batch"),
    ("patch", "nodes"),
    ("create", "customresourcedefinitions.apiextensions.k8s.io"),
    ("escalate", "roles.rbac.authorization.k8s.io"),
    ("bind", "roles.rbac.authorization.k8s.io"),
    ("create", "clusterroles.rbac.authorization.k8s.io"),
    ("impersonate", "users"),
    ("list", "leases.coordination.k8s.io"),
)
SUBRESOURCES = ("status", "exec", "token", "finalizers")


@pytest.mark.usefixtures("kinds")
def test_kubectl_says_the_same(operator: Callable[..., Access], release: Release) -> None:
    access = operator({})
    ask = ("auth", "can-i", "-n", release.namespace)
    yes = (("list", "servingpools.argosy.dev"), ("patch", "servingpools.argosy.dev/status"), ("update", "configmaps"))
    for right in yes:
        wait_for(" ".join(right), functools.partial(_may, access, *ask, *right), 30)
    for verb, resource in FORBIDDEN:
        assert not _may(access, *ask, verb, resource), f"{verb} {resource}"
    assert _may(access, *ask, "update", "leases.coordination.k8s.io/argosy")
    assert not _may(access, *ask, "update", "leases.coordination.k8s.io/kube-scheduler")


def _may(access: Access, *words: str) -> bool:
    """Return kubectl's answer; the last word is RESOURCE, RESOURCE/NAME or RESOURCE/SUBRESOURCE."""
    *ask, resource = words
    kind, _, part = resource.partition("/")
    what = (kind, f"--subresource={part}") if part in SUBRESOURCES else (resource,)
    result = access.kubectl_process(*ask, *what)
    answer = result.stdout.strip().split(" ")[0]
    assert answer in ("yes", "no"), result.stderr
    return answer == "yes"


def test_it_may_give_the_agents_their_rights_and_no_others(
    operator: Callable[..., Access], release: Release, cluster: Cluster
) -> None:
    cluster.kubectl("create", "namespace", release.namespace)
    access = operator({"watchNamespaces": [release.namespace]})
    wait_for("RBAC", lambda: _has(access, release.namespace) >= IN_A_NAMESPACE, 30)
    for manifest in (AGENTS_ROLE, AGENTS_BINDING):
        access.apply(manifest % release.namespace, server_side=True)
        access.apply(manifest % release.namespace, server_side=True)
    refused = access.kubectl_process("apply", "-f", "-", stdin=TOO_MUCH % release.namespace)
    assert "attempting to grant RBAC permissions not currently held" in refused.stderr


@pytest.mark.usefixtures("kinds")
def test_who_may_edit_a_namespace_may_edit_its_models(release: Release, cluster: Cluster) -> None:
    release.install({**WITHOUT_CRDS, "replicas": 0})
    cluster.kubectl("create", "rolebinding", "joe", "--clusterrole=edit", "--user=joe", "-n", release.namespace)
    cluster.kubectl("create", "rolebinding", "ann", "--clusterrole=view", "--user=ann", "-n", release.namespace)
    ask = ("auth", "can-i", "-n", release.namespace)
    joe, ann = (cluster.as_user(cluster.user_kubeconfig(name)) for name in ("joe", "ann"))
    wait_for("the aggregated roles", lambda: _may(joe, *ask, "create", "servingpools.argosy.dev"), 60)
    wait_for("the aggregated roles", lambda: _may(ann, *ask, "list", "servingpools.argosy.dev"), 60)
    assert not _may(joe, *ask, "patch", "servingpools.argosy.dev/status")
    assert not _may(ann, *ask, "create", "servingpools.argosy.dev")

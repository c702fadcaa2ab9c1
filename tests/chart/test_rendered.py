"""What the chart makes of its values, applied to a real API server with strict field validation."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from e2e.cluster import Cluster
from tests.chart.conftest import CHART, WITHOUT_CRDS, Release, established, only
from tests.chart.monitoring.files import FOLDER, RULES
from tests.operator.planning import declared

from argosy.api import ServingPool
from argosy.cli.cluster.operator import operator
from argosy.controller.metrics.metrics import Metrics
from argosy.render.workloads import metadata
from argosy.render.workloads.services import PORTS

Releases = Callable[..., Release]

MONITORING = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.monitoring.coreos.com}}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {{kind: {kind}, plural: {plural}, singular: {singular}, listKind: {kind}List}}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"""
PLACED = {
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "control-plane", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}]}]}}},
    "topologySpreadConstraints": [{"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}],
    "priorityClassName": "system-cluster-critical",
}  # fmt: skip
DRESSED = {
    "commonLabels": {"team": "ml"},
    "podLabels": {"mesh": "off"},
    "podAnnotations": {"note": "1"},
    "serviceAccount": {"annotations": {"cloud/role": "r"}},
    "metrics": {"service": {"annotations": {"scrape": "true"}}},
    "bundles": {"enabled": True, "sizeLimit": "32Mi"},
    "extraArgs": ["--host=::"],
    "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
}
BARE = {
    "rbac": {"create": False},
    "builds": {"priorityClass": {"create": False}},
    "placeholders": {"priorityClass": {"create": False}},
    "serviceAccount": {"create": False},
    "podDisruptionBudget": {"enabled": False},
    "metrics": {"service": {"enabled": False}},
    "admission": {"enabled": False},
    "resources": {"requests": None, "limits": None},
}


@pytest.fixture(scope="module")
def monitoring(cluster: Cluster) -> None:
    """Install the Prometheus operator's kinds."""
    for kind in ("ServiceMonitor", "PodMonitor", "PrometheusRule"):
        cluster.apply(MONITORING.format(kind=kind, plural=kind.lower() + "s", singular=kind.lower()))
        established(cluster, f"{kind.lower()}s.monitoring.coreos.com")


@pytest.mark.parametrize("values", [{}, PLACED, DRESSED, BARE], ids=["as it is", "placed", "dressed", "bare"])
def test_the_api_server_takes_it_and_knows_every_field(release: Release, values: dict[str, Any]) -> None:
    objects = release.install({**WITHOUT_CRDS, **values}, check_fields=True)
    assert only(objects, "Deployment")["metadata"]["namespace"] == release.namespace


def test_the_objects_are_those_that_the_values_ask_for(release: Release) -> None:
    kinds = sorted(body["kind"] for body in release.install(WITHOUT_CRDS))
    assert kinds == sorted(
        ["Deployment", "PodDisruptionBudget", "Service", "ServiceAccount", "Role", "RoleBinding"]
        + ["ClusterRole"] * 3
        + ["ClusterRoleBinding", "PriorityClass", "PriorityClass"]
        + ["Service", "Secret", "ValidatingWebhookConfiguration"]
    )
    assert [body["kind"] for body in release.upgrade(WITHOUT_CRDS | BARE)] == ["Deployment"]


def test_the_budget_is_of_the_version_that_the_cluster_offers(release: Release, cluster: Cluster) -> None:
    offered = cluster.kubectl("api-versions").split()
    budget = only(release.install(WITHOUT_CRDS), "PodDisruptionBudget")
    assert budget["apiVersion"] == ("policy/v1" if "policy/v1" in offered else "policy/v1beta1")
    assert not [body for body in release.upgrade(WITHOUT_CRDS | {"replicas": 1}) if body["kind"] == budget["kind"]]


@pytest.mark.parametrize(
    ("version", "policy"),
    [("v1.26.15", None), ("v1.27.0", "AlwaysAllow"), ("v1.27.3-gke.100", "AlwaysAllow"), ("v1.33.1", "AlwaysAllow")],
)
def test_an_unready_replica_may_be_evicted_if_the_cluster_supports_it(
    releases: Releases, tmp_path: Path, version: str, policy: str | None
) -> None:
    chart = Path(shutil.copytree(CHART, tmp_path / "argosy"))
    template = chart / "templates/poddisruptionbudget.yaml"
    template.write_text(template.read_text().replace(".Capabilities.KubeVersion.Version", f'"{version}"'))
    budget = only(releases(chart=chart).install(WITHOUT_CRDS), "PodDisruptionBudget")
    assert budget["spec"].get("unhealthyPodEvictionPolicy") == policy


def test_the_pods_keep_to_the_restricted_standard(release: Release) -> None:
    pod = _pod(release.install(WITHOUT_CRDS))
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert container["resources"] == {
        "requests": {"cpu": "100m", "memory": "256Mi"},
        "limits": {"memory": "512Mi"},
    }


def test_the_operator_knows_every_flag(release: Release) -> None:
    values = {"watchNamespaces": ["default", release.namespace], "metrics": {"port": 9090}}
    (container,) = only(release.install({**WITHOUT_CRDS, **values}), "Deployment")["spec"]["template"]["spec"][
        "containers"
    ]
    program, command = container["command"]
    flags = dict(flag.split("=", 1) for flag in container["args"] if not flag.startswith("--namespace"))
    assert (program, command) == ("argosy", operator.__name__)
    options = _options()
    assert {flag.split("=")[0] for flag in container["args"]} <= options
    assert flags["--lease"] == "$(POD_NAMESPACE)/argosy"
    assert flags["--port"] == "9090"
    assert container["args"][:2] == ["--namespace=default", f"--namespace={release.namespace}"]
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "metrics"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "metrics"}
    assert flags["--admission-port"] == "9443"
    assert container["ports"] == [
        {"name": "metrics", "containerPort": 9090, "protocol": "TCP"},
        {"name": "admission", "containerPort": 9443, "protocol": "TCP"},
    ]


def _pod(objects: list[dict[str, Any]]) -> dict[str, Any]:
    return only(objects, "Deployment")["spec"]["template"]["spec"]


def _metrics_service(objects: list[dict[str, Any]]) -> dict[str, Any]:
    return only([body for body in objects if body["metadata"]["name"].endswith("-metrics")], "Service")


def _options() -> set[str]:
    app = typer.Typer(add_completion=False)
    app.command()(operator)
    return {name for option in typer.main.get_command(app).params for name in option.opts}


DIGEST = "sha256:" + "ab" * 32
IMAGES = {
    "the release's version": ({}, "argosy-operator:0.1.0", "nvcr.io/nvidia/tritonserver:26.07-py3"),
    "a mirror, but for what names its registry": (
        {"registry": "mirror.test:5000/x"},
        "mirror.test:5000/x/argosy-operator:0.1.0",
        "nvcr.io/nvidia/tritonserver:26.07-py3",
    ),
    "a folder of a mirror": (
        {"registry": "mirror.test", "operator": {"repository": "ml/op"}, "triton": {"repository": "nv/triton"}},
        "mirror.test/ml/op:0.1.0",
        "mirror.test/nv/triton:26.07-py3",
    ),
    "a digest wins": (
        {"operator": {"tag": "x", "digest": DIGEST}, "triton": {"repository": "localhost/triton", "tag": "e2e"}},
        f"argosy-operator@{DIGEST}",
        "localhost/triton:e2e",
    ),
}


@pytest.mark.parametrize(("images", "operator", "triton"), IMAGES.values(), ids=IMAGES)
def test_images_are_named(release: Release, images: dict[str, Any], operator: str, triton: str) -> None:
    values = {**WITHOUT_CRDS, "images": {**images, "pullPolicy": "Never", "pullSecrets": ["registry"]}}
    pod = _pod(release.install(values))
    (container,) = pod["containers"]
    assert (container["image"], container["imagePullPolicy"]) == (operator, "Never")
    assert f"--triton-image={triton}" in container["args"]
    assert "--pull-policy=Never" in container["args"]
    assert pod["imagePullSecrets"] == [{"name": "registry"}]


def test_the_variants_of_nvidias_image_are_named(release: Release) -> None:
    images = {"registry": "mirror.test", "tritonVllm": {"repository": "nv/triton"}}
    (container,) = _pod(release.install({**WITHOUT_CRDS, "images": images}))["containers"]
    assert "--triton-vllm-image=mirror.test/nv/triton:26.07-vllm-python-py3" in container["args"]
    assert "--triton-trtllm-image=nvcr.io/nvidia/tritonserver:26.07-trtllm-python-py3" in container["args"]


def test_the_targets_of_the_servers_image_follow_it_unless_they_are_named(release: Release) -> None:
    own = {"runtimeCuda": {"repository": "own/cuda"}, "runtimeVllm": {"tag": "x"}}
    images = {"registry": "mirror.test", "runtime": {"repository": "ml/run", "tag": "7"}, **own}
    (container,) = _pod(release.install({**WITHOUT_CRDS, "images": images}))["containers"]
    assert [argument for argument in container["args"] if "-image=mirror.test/" in argument] == [
        "--argosy-image=mirror.test/ml/run:7",
        "--argosy-cuda-image=mirror.test/own/cuda:7-cuda",
        "--argosy-vllm-image=mirror.test/ml/run:x",
        "--argosy-tensorrt-llm-image=mirror.test/ml/run:7-tensorrt-llm",
        "--agent-image=mirror.test/ml/run:7",
    ]


@pytest.mark.usefixtures("monitoring")
def test_alerts_ask_for_metrics_that_there_are(release: Release) -> None:
    rules = {"enabled": True, "labels": {"a": "b"}}
    values = {"metrics": {"serviceMonitor": {"enabled": True}, "prometheusRule": rules}}
    objects = release.install({**WITHOUT_CRDS, **values})
    metrics = Metrics()
    metrics.request("get", "pods", 200, 0.1)
    exported = {line.split("{")[0].split(" ")[0] for line in metrics.text().decode().splitlines() if line[0] != "#"}
    rule = next(body for body in objects if body["metadata"]["name"] == "argosy" and body["kind"] == "PrometheusRule")
    service = _metrics_service(objects)["metadata"]["name"]
    rules = [alert for group in rule["spec"]["groups"] for alert in group["rules"]]
    for alert in rules:
        queried = _metrics(alert["expr"])
        assert queried
        assert queried <= exported, alert["alert"]
        assert f'{{namespace="{release.namespace}",service="{service}"' in alert["expr"]
    assert rule["metadata"]["labels"]["a"] == "b"


def _metrics(expression: str) -> set[str]:
    return set(re.findall(r"\bargosy_\w+(?=\{)", expression))


@pytest.mark.usefixtures("monitoring")
def test_the_monitor_and_the_policy_select_the_operator(release: Release) -> None:
    values = {
        "metrics": {"serviceMonitor": {"enabled": True, "interval": "5s", "scrapeTimeout": "4s"}},
        "networkPolicy": {"enabled": True, "from": [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]},
    }
    objects = release.install({**WITHOUT_CRDS, **values})
    pods = only(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
    service = _metrics_service(objects)
    monitor = only(objects, "ServiceMonitor")["spec"]
    policy = only(objects, "NetworkPolicy")["spec"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]
    assert service["spec"]["selector"].items() <= pods.items()
    assert policy["podSelector"]["matchLabels"].items() <= pods.items()
    assert policy["ingress"] == [{
        "ports": [{"port": 8080, "protocol": "TCP"}],
        "from": [{"podSelector": {"matchLabels": {"app": "prometheus"}}}],
    }, {"ports": [{"port": 9443, "protocol": "TCP"}]}]  # fmt: skip


@pytest.mark.usefixtures("monitoring")
def test_the_servers_rules_and_the_dashboards_are_the_charts_files(release: Release) -> None:
    values = {"metrics": {"prometheusRule": {"enabled": True}, "dashboards": {"enabled": True}}}
    objects = release.install({**WITHOUT_CRDS, **values})
    rules = {body["metadata"]["name"]: body["spec"] for body in objects if body["kind"] == "PrometheusRule"}
    assert rules["argosy-servers"] == yaml.safe_load(RULES.read_text())
    groups = [group["name"] for spec in rules.values() for group in spec["groups"]]
    assert len(set(groups)) == len(groups)
    boards = [body for body in objects if body["kind"] == "ConfigMap"]
    assert {name: text for body in boards for name, text in body["data"].items()} == {
        path.name: path.read_text() for path in FOLDER.glob("*.json")
    }
    assert {body["metadata"]["labels"]["grafana_dashboard"] for body in boards} == {"1"}


@pytest.mark.usefixtures("monitoring")
def test_the_pod_monitor_selects_servers_and_activators(releases: Releases) -> None:
    enabled = {"metrics": {"podMonitor": {"enabled": True, "labels": {"release": "stack"}}}}
    monitor = only(releases().install({**WITHOUT_CRDS, **enabled}), "PodMonitor")
    pool = declared.pool()
    assert isinstance(pool, ServingPool)
    selected = monitor["spec"]["selector"]["matchLabels"].items()
    assert selected <= metadata.server_labels(pool, "p-0").items()
    assert selected <= metadata.activator_pod_labels(pool).items()
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] in PORTS
    read = {source for relabeling in endpoint["relabelings"] for source in relabeling["sourceLabels"]}
    labels = {metadata.POOL_LABEL, metadata.SERVER_LABEL, metadata.ACTIVATOR_LABEL}
    assert read == {f"__meta_kubernetes_pod_label_{re.sub('[./-]', '_', name)}" for name in labels}
    assert monitor["spec"]["namespaceSelector"] == {"any": True}
    assert monitor["metadata"]["labels"]["release"] == "stack"
    some = releases().install({**WITHOUT_CRDS, **enabled, "watchNamespaces": ["default"]})
    assert only(some, "PodMonitor")["spec"]["namespaceSelector"] == {"matchNames": ["default"]}


def test_two_releases_stand_side_by_side(releases: Releases) -> None:
    first, second = (_names(release.install(WITHOUT_CRDS)) for release in (releases(), releases()))
    assert not first & second


def _names(objects: list[dict[str, Any]]) -> set[tuple[str, ...]]:
    return {(body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]) for body in objects}


@pytest.mark.parametrize(("of", "flag"), [("builds", "build"), ("placeholders", "placeholder")])
@pytest.mark.parametrize(
    ("priority_class", "made", "named"),
    [
        ({}, "argosy-{namespace}-{of}", "argosy-{namespace}-{of}"),
        ({"name": "cheap"}, "cheap", "cheap"),
        ({"create": False, "name": "system-cluster-critical"}, "", "system-cluster-critical"),
        ({"create": False}, "", ""),
    ],
)
def test_builds_and_placeholders_have_the_priority_class_that_the_values_name(
    release: Release, priority_class: dict[str, Any], made: str, named: str, of: str, flag: str
) -> None:
    without = {name: {"priorityClass": {"create": False}} for name in ("builds", "placeholders")}
    values = {**WITHOUT_CRDS, **without, of: {"priorityClass": priority_class}}
    objects = release.install(values, check_fields=True)
    classes = [body for body in objects if body["kind"] == "PriorityClass"]
    name = {"namespace": release.namespace, "of": of}
    assert [body["metadata"]["name"] for body in classes] == [made.format(**name)] * bool(made)
    assert all(body["value"] < 0 and body["preemptionPolicy"] == "Never" for body in classes)
    (container,) = _pod(objects)["containers"]
    flags = [one for one in container["args"] if one.startswith(f"--{flag}-priority-class")]
    assert flags == [f"--{flag}-priority-class={named.format(**name)}"] * bool(named)
    assert {one.split("=")[0] for one in flags} <= _options()


def test_names_that_read_as_something_else_stay_texts(releases: Releases, cluster: Cluster) -> None:
    cluster.kubectl("create", "namespace", "1e3")
    values = {
        "watchNamespaces": ["1e3", "2024"],
        "nameOverride": "null",
        "fullnameOverride": "true",
        "images": {"pullSecrets": ["0777"]},
        "serviceAccount": {"name": "2027"},
    }
    objects = releases("2024", name="2025").install(WITHOUT_CRDS | values, check_fields=True)
    assert {body["metadata"].get("namespace", "2024") for body in objects} == {"1e3", "2024"}
    assert {body["metadata"]["labels"]["app.kubernetes.io/instance"] for body in objects} == {"2025"}
    assert {subject["namespace"] for body in objects for subject in body.get("subjects", ())} == {"2024"}
    assert only(objects, "ServiceAccount")["metadata"]["name"] == "2027"
    assert only(objects, "Deployment")["metadata"]["name"] == "true"
    assert _pod(objects)["imagePullSecrets"] == [{"name": "0777"}]


def test_long_names_still_make_valid_labels(releases: Releases) -> None:
    values = {"fullnameOverride": "n" * 50, "nameOverride": "m" * 50}
    objects = releases(name="r" * 53).install(WITHOUT_CRDS | values, check_fields=True)
    assert _metrics_service(objects)["metadata"]["name"] == "n" * 50 + "-metrics"
    assert only(objects, "Deployment")["metadata"]["labels"]["app.kubernetes.io/name"] == "m" * 50

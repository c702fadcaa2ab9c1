"""What of a Pod template is refused, by path and with the way out, and what is let through."""

from typing import Any

import pytest

from argosy.api.documents import parse_body
from argosy.api.values.meta import API_VERSION


def problems(template: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the paths below the template and the messages of all its errors."""
    spec = {"runtime": {"podTemplate": template}}
    body = {"apiVersion": API_VERSION, "kind": "ServingPool", "metadata": {"name": "p"}, "spec": spec}
    prefix = "spec.runtime.podTemplate."
    return [(problem.path.removeprefix(prefix), problem.message) for problem in parse_body(body)[1]]


def server(**fields: Any) -> dict[str, Any]:
    """Return a template that sets fields of the server's container."""
    return {"spec": {"containers": [{"name": "server", **fields}]}}


def agent(**fields: Any) -> dict[str, Any]:
    """Return a template that sets fields of the agent's container."""
    return {"spec": {"containers": [{"name": "agent", **fields}]}}


def sidecar(**fields: Any) -> dict[str, Any]:
    """Return a template with a container of the user's."""
    return {"spec": {"containers": [{"name": "logs", **fields}]}}


GPU = {"nvidia.com/gpu": 1}
MIG = {"nvidia.com/mig-1g.10gb": 1}
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"metadata": {"labels": {"argosy.dev/pool": "q"}}}, "metadata.labels['argosy.dev/pool']", "another key"),
    ({"metadata": {"labels": {"serves.argosy.dev/m": "true"}}}, "metadata.labels['serves.argosy.dev/m']", "another"),
    ({"metadata": {"labels": {"pod-template-hash": "1"}}}, "metadata.labels.pod-template-hash", "another key"),
    ({"metadata": {"labels": {"a": "b c"}}}, "metadata.labels.a", "the value of a label"),
    ({"metadata": {"annotations": {"argosy.dev/x": ""}}}, "metadata.annotations['argosy.dev/x']", "another key"),
    ({"spec": {"nodeName": "n"}}, "spec.nodeName", "spec.nodeSelector"),
    ({"spec": {"nodeSelector": {"a": "b"}}}, "spec.nodeSelector", "set spec.nodeSelector"),
    ({"spec": {"tolerations": []}}, "spec.tolerations", "set spec.tolerations"),
    ({"spec": {"affinity": {"nodeAffinity": {}}}}, "spec.affinity.nodeAffinity", "the plan decides"),
    ({"spec": {"affinity": None}}, "spec.affinity", "expected a map"),
    ({"spec": {"serviceAccountName": "a"}}, "spec.serviceAccountName", "spec.storage.serviceAccountName"),
    ({"spec": {"restartPolicy": "Never"}}, "spec.restartPolicy", "is not the template's to set"),
    ({"spec": {"terminationGracePeriodSeconds": 1}}, "spec.terminationGracePeriodSeconds", "finish its requests"),
    ({"spec": {"hostNetwork": True}}, "spec.hostNetwork", "the same ports"),
    ({"spec": {"volumes": [{"name": "models"}]}}, "spec.volumes[0].name", "choose another name"),
    ({"spec": {"volumes": [{"name": "claim-a"}]}}, "spec.volumes[0].name", "choose another name"),
    ({"spec": {"volumes": [{"emptyDir": {}}]}}, "spec.volumes[0]", "needs name"),
    ({"spec": {"containers": {"server": {}}}}, "spec.containers", "expected a list"),
    ({"spec": {"containers": ["server"]}}, "spec.containers[0]", "needs name"),
    ({"spec": {"containers": [{"name": "a"}, {"name": "a"}]}}, "spec.containers[1].name", "join the two"),
    ({"spec": {"initContainers": [{"name": "agent"}]}}, "spec.initContainers[0].name", "choose another name"),
    (server(image="i"), "spec.containers[0].image", "set spec.runtime.image"),
    (server(args=["--id=a"]), "spec.containers[0].args", "set spec.runtime.args"),
    (server(command=["sh"]), "spec.containers[0].command", "Argosy starts it"),
    (server(ports=[]), "spec.containers[0].ports", "is not the template's to set"),
    (server(livenessProbe={}), "spec.containers[0].livenessProbe", "is not the template's to set"),
    (server(lifecycle={}), "spec.containers[0].lifecycle", "how a server ends"),
    (agent(image="i"), "spec.containers[0].image", "the release's"),
    (agent(envFrom=[]), "spec.containers[0].envFrom", "set spec.storage.secretName"),
    (server(resources=None), "spec.containers[0].resources", "expected a map"),
    (server(resources={"limits": None}), "spec.containers[0].resources.limits", "expected a map"),
    (server(resources={"limits": GPU}), "spec.containers[0].resources.limits['nvidia.com/gpu']", "maxGpusPerServer"),
    (sidecar(resources={"requests": MIG}), "spec.containers[0].resources.requests['nvidia.com/mig-1g.10gb']", "GPUs"),
    (
        {"spec": {"initContainers": [{"name": "i", "resources": {"limits": GPU}}]}},
        "spec.initContainers[0].resources.limits['nvidia.com/gpu']",
        "the plan decides",
    ),
    (server(env=None), "spec.containers[0].env", "expected a list"),
    (server(env=[{"value": "a"}]), "spec.containers[0].env[0]", "needs name"),
    (server(env=[{"name": "A"}, {"name": "A"}]), "spec.containers[0].env[1].name", "join the two"),
    (server(env=[{"name": "CUDA_VISIBLE_DEVICES"}]), "spec.containers[0].env[0].name", "decided by the plan"),
    (sidecar(env=[{"name": "NVIDIA_VISIBLE_DEVICES"}]), "spec.containers[0].env[0].name", "decided by the plan"),
    (agent(env=[{"name": "POD_UID"}]), "spec.containers[0].env[0].name", "is set by Argosy"),
    (
        server(volumeMounts=[{"name": "token", "mountPath": "/t"}]),
        "spec.containers[0].volumeMounts[0].name",
        "your own",
    ),
    (sidecar(volumeMounts=[{"name": "models", "mountPath": "/m"}]), "spec.containers[0].volumeMounts[0].name", "own"),
    *(
        (
            server(volumeMounts=[{"name": "v", "mountPath": path}]),
            "spec.containers[0].volumeMounts[0].mountPath",
            "choose another path",
        )
        for path in ("/", "/models", "/models/", "/models/repository/m", "/x/../models", "/tmp")
    ),
    (
        agent(volumeMounts=[{"name": "v", "mountPath": "/var/run/secrets"}]),
        "spec.containers[0].volumeMounts[0].mountPath",
        "would hide /var/run/secrets/kubernetes.io/serviceaccount",
    ),
    (sidecar(ports=[{"containerPort": 8000}]), "spec.containers[0].ports[0].containerPort", "a port of the server's"),
    (
        sidecar(volumeMounts=[{"name": "control-token", "mountPath": "/x"}]),
        "spec.containers[0].volumeMounts[0].name",
        "a volume of Argosy's",
    ),
    (
        {"spec": {"initContainers": [{"name": "control-token", "image": "other"}]}},
        "spec.initContainers[0].name",
        "a container of Argosy's",
    ),
    (
        {"spec": {"volumes": [{"name": "control-token", "emptyDir": {}}]}},
        "spec.volumes[0].name",
        "a volume of Argosy's",
    ),
    ({"spec": {"securityContext": {"$patch": "replace"}}}, "spec.securityContext['$patch']", "null removes a field"),
    ({"spec": {"volumes": [{"name": "a", "$patch": "delete"}]}}, "spec.volumes[0]['$patch']", "null removes a field"),
]


@pytest.mark.parametrize(
    ("template", "path", "reported_value"), REFUSED, ids=[f"{at}-{e[1]}" for at, e in enumerate(REFUSED)]
)
def test_what_is_argosys_is_refused_by_path(template: dict[str, Any], path: str, reported_value: str) -> None:
    ((result, message),) = problems(template)
    assert result == path
    assert reported_value in message


def test_all_that_is_wrong_is_reported_together() -> None:
    template = server(image="i", env=[{"name": "CUDA_VISIBLE_DEVICES"}])
    template["spec"]["nodeName"] = "n"
    template["metadata"] = {"labels": {"argosy.dev/pool": "q"}}
    assert sorted(path for path, _ in problems(template)) == [
        "metadata.labels['argosy.dev/pool']",
        "spec.containers[0].env[0].name",
        "spec.containers[0].image",
        "spec.nodeName",
    ]


@pytest.mark.parametrize(
    "template",
    [
        {"metadata": {"labels": {"notargosy.dev/x": "1", "empty": ""}}},
        {"spec": {"affinity": {"podAntiAffinity": {}}, "runtimeClassName": "nvidia", "schedulerName": "own"}},
        {"spec": {"securityContext": {"runAsUser": None}, "aFieldOfTomorrow": {"anything": [1, None]}}},
        {"spec": {"volumes": [{"name": "models-of-mine", "emptyDir": {}}]}},
        server(volumeMounts=[{"name": "v", "mountPath": path} for path in ("/dev/shm", "/tmp/cache", "/modelsx")]),
        server(resources={"requests": {"cpu": 4}, "limits": {"memory": "1Gi"}}, envFrom=[{"secretRef": {"name": "s"}}]),
        agent(env=[{"name": "HTTPS_PROXY", "value": "http://proxy"}], resources={"limits": {"memory": "1Gi"}}),
        sidecar(image="i", command=["sh"], ports=[{"containerPort": 9}], livenessProbe={"tcpSocket": {"port": 9}}),
        {"spec": {"initContainers": [{"name": "init", "image": "i", "args": ["x"]}]}},
    ],
)
def test_all_else_is_the_platforms_to_say(template: dict[str, Any]) -> None:
    assert problems(template) == []

"""A pool's activator: it queues requests for models and ensembles that no server has, so that they can scale to zero.

It has access only to its own ConfigMaps: its members, written by the operator in one or more parts, and its report of
queued requests. Its Pod does not have the labels of the pool's servers. It has the route labels of models, as servers
do, so that a Service selects it while no server has the model.
"""

from typing import Any

from argosy.api.model.scaling.scaling import HOLD_MS
from argosy.api.pool.podtemplate import AGENT
from argosy.api.pool.tracing import tracing_flags
from argosy.api.servingpool import ServingPool
from argosy.render.names import activator_name, state_name
from argosy.render.workloads.metadata import activator_labels, activator_pod_labels, owned, pods_that_activate
from argosy.render.workloads.pods.containers import HOME, POD_UID, container_security
from argosy.render.workloads.pods.deployment import budget_spec, pod_security
from argosy.render.workloads.pods.ending import DRAIN_FLAGS, DRAIN_TIMEOUT_S
from argosy.render.workloads.pods.inputs import Cluster, Images, KubernetesObject
from argosy.render.workloads.pods.pool_template import OF_CONTAINERS, under_pool_template
from argosy.render.workloads.pods.volumes import TEMPORARY, mount, token_mount, token_volume
from argosy.render.workloads.rbac import ROLE_GROUP, ROLE_VERSION, configmap_rule
from argosy.render.workloads.services import PORTS
from argosy_agent.contract.activation import MEMBERS_KEY, Activation, activation_texts, part_name

ACTIVATOR = "activator"
"""Its container."""
_TMP = "tmp"
_SLACK_S = 10
_REQUESTS = {"cpu": "50m", "memory": "128Mi"}
"""What it takes while few wait. No limit: what waits in memory is bounded by itself."""
_REPLICAS = 2
"""One more than is needed: requests go on being held while a Pod is replaced, and each Pod says whom it holds."""
_TAKEN = {AGENT: OF_CONTAINERS}
"""It runs in the agent's image, and asks as little."""


def activator_objects(
    pool: ServingPool, activation: Activation, images: Images, cluster: Cluster
) -> tuple[KubernetesObject, ...]:
    """Return all that stands for it. In which order its parts are applied is of no matter: it waits for all of them."""
    texts = activation_texts(activation)
    names = [part_name(activator_name(pool.name), number) for number in range(len(texts))]
    return (
        {**_owned(pool, "v1", "ServiceAccount"), "automountServiceAccountToken": False},
        _role(pool, names),
        _role_binding(pool),
        *(
            {**_owned(pool, "v1", "ConfigMap", name), "data": {MEMBERS_KEY: text}}
            for name, text in zip(names, texts, strict=True)
        ),
        # without data here, so that applying it takes nothing away
        _owned(pool, "v1", "ConfigMap", state_name(activator_name(pool.name))),
        _network_policy(pool),
        _disruption_budget(pool, cluster),
        _deployment(pool, _exit_s(activation), images),
    )


def _owned(pool: ServingPool, api_version: str, kind: str, name: str = "") -> dict[str, Any]:
    return owned(api_version, kind, name or activator_name(pool.name), pool, activator_labels(pool))


def _role(pool: ServingPool, parts: list[str]) -> dict[str, Any]:
    name = activator_name(pool.name)
    rules = [
        configmap_rule(parts, ["get", "list", "watch"]),
        configmap_rule(state_name(name), ["get", "patch", "update"]),
    ]
    return {**_owned(pool, ROLE_VERSION, "Role"), "rules": rules}


def _role_binding(pool: ServingPool) -> dict[str, Any]:
    name = activator_name(pool.name)
    return {
        **_owned(pool, ROLE_VERSION, "RoleBinding"),
        "roleRef": {"apiGroup": ROLE_GROUP, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": pool.namespace}],
    }


def _network_policy(pool: ServingPool) -> dict[str, Any]:
    """Return a NetworkPolicy that allows all traffic to its ports, as to servers, and none else."""
    ingress = {"ports": [{"port": port, "protocol": "TCP"} for port in PORTS.values()]}
    selector = {"matchLabels": pods_that_activate(pool)}
    return {
        **_owned(pool, "networking.k8s.io/v1", "NetworkPolicy"),
        "spec": {"podSelector": selector, "policyTypes": ["Ingress"], "ingress": [ingress]},
    }


def _disruption_budget(pool: ServingPool, cluster: Cluster) -> dict[str, Any]:
    """Return a PodDisruptionBudget by which a node's drain evicts one of its Pods at a time."""
    spec = budget_spec(pods_that_activate(pool), cluster)
    return {**_owned(pool, cluster.pdb_version, "PodDisruptionBudget"), "spec": spec}


def _exit_s(activation: Activation) -> int:
    """Return how long queued requests may wait when its Pod is to end: as long as the longest timeout.

    In full steps of the default, so that another resource's timeout seldom changes the Pod.
    """
    longest = max((member.timeout_s for member in activation.members), default=0.0)
    step = HOLD_MS / 1000
    return int(step * max(1, -(-longest // step)))


def _deployment(pool: ServingPool, exit_s: int, images: Images) -> dict[str, Any]:
    """Return a Deployment that starts a new Pod before the old one ends: queued requests stay, new ones reach the new
    Pod.
    """
    spec = {
        "replicas": _REPLICAS,
        "revisionHistoryLimit": 1,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "selector": {"matchLabels": pods_that_activate(pool)},
        "template": _template(pool, exit_s, images),
    }
    return {**_owned(pool, "apps/v1", "Deployment"), "spec": spec}


def _template(pool: ServingPool, exit_s: int, images: Images) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "serviceAccountName": activator_name(pool.name),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": DRAIN_TIMEOUT_S + exit_s + _SLACK_S,
        "securityContext": pod_security(),
        "affinity": _on_two_nodes(pool),
        "containers": [_container(pool, exit_s, images)],
        "volumes": [{"name": _TMP, "emptyDir": {}}, token_volume()],
    }
    template = {"metadata": {"labels": activator_pod_labels(pool)}, "spec": spec}
    return under_pool_template(pool, template, _TAKEN)


def _on_two_nodes(pool: ServingPool) -> dict[str, Any]:
    """Return an affinity that spreads the Pods over nodes, where there are two."""
    selector = {"matchLabels": pods_that_activate(pool)}
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    return {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]
        }
    }


def _container(pool: ServingPool, exit_s: int, images: Images) -> dict[str, Any]:
    name = activator_name(pool.name)
    return {
        "name": ACTIVATOR,
        "image": images.agent,
        "imagePullPolicy": images.pull_policy,
        "command": ["python", "-m", "argosy_agent.activator"],
        "args": [
            f"--configmap={pool.namespace}/{name}",
            f"--state={pool.namespace}/{state_name(name)}",
            "--pod=$(POD_UID)",
            *(f"--{port}-port={number}" for port, number in PORTS.items()),
            *DRAIN_FLAGS,
            f"--exit-timeout-secs={exit_s}",
            *tracing_flags(pool.spec.tracing),
        ],
        "env": [dict(HOME), dict(POD_UID)],
        "ports": [{"name": port, "containerPort": number, "protocol": "TCP"} for port, number in PORTS.items()],
        "resources": {"requests": dict(_REQUESTS)},
        "livenessProbe": _probe("live", period=10, failures=6),
        "readinessProbe": _probe("ready", period=2, failures=3),
        "volumeMounts": [mount(_TMP, TEMPORARY), token_mount()],
        "securityContext": container_security(),
    }


def _probe(path: str, *, period: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": f"/v2/health/{path}", "port": "http"},
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }

"""The Job of `argosy profile --job`: a measurement of one model on GPUs of a kind, with the pool's image and storage.

It is the user's, not the operator's: nothing owns it, and its labels are not those of what the operator makes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from argosy.api import InferenceModel, ServingPool
from argosy.api.pool.podtemplate import AGENT, SERVER
from argosy.api.values.capability import CapabilityRange
from argosy.planning.nodes.slices import GPU_RESOURCE
from argosy.planning.requirements import NodeRequirements
from argosy.render.names import label, profile_name, volume_name
from argosy.render.workloads.placeholders import PRODUCT
from argosy.render.workloads.pods import volumes
from argosy.render.workloads.pods.containers import HOME, NO_GPUS, container_security
from argosy.render.workloads.pods.deployment import pod_security
from argosy.render.workloads.pods.inputs import KubernetesObject
from argosy.render.workloads.pods.overlay import overlay
from argosy.render.workloads.pods.pool_template import under_pool_template

CONTAINER: Final = "profile"
PROFILE_LABEL: Final = "argosy.dev/profile"
"""On the Job and its Pod: the model."""
TTL_S: Final = 600
"""How long a Job that is over stays where nothing has removed it: where the command was killed."""
_COMMAND: Final = ["python", "-m", "argosy.local.profiling.in_job"]
_MAJOR, _MINOR = "nvidia.com/gpu.compute.major", "nvidia.com/gpu.compute.minor"
_LARGEST: Final = 99
"""The largest major number of a compute capability that a range knows."""
_TAKEN = {SERVER: ("env", "resources", "securityContext", "imagePullPolicy"), AGENT: ("env", "volumeMounts")}
"""It computes as a server does, and reaches storage as the agent does."""
_OWN = frozenset(("priorityClassName", "priority", "preemptionPolicy"))
"""It displaces no server."""
_GRACE_S, _TMP = 30, "tmp"


@dataclass(frozen=True, slots=True)
class ProfileJob:
    """A measurement: of a model of a pool, by an image. `gpus`: how many are requested whole, 0 for the CPU;
    `requires`: what its node must have; `variable` and `request`: what the program in it reads; `deadline_s`: how long
    it may take.
    """

    model: InferenceModel
    pool: ServingPool
    namespace: str
    image: str
    variable: str
    request: str
    gpus: int
    requires: NodeRequirements
    deadline_s: int


def profile_job(job: ProfileJob) -> dict[str, Any]:
    """Return the Job, whose name the API server completes."""
    labels = {"app.kubernetes.io/part-of": "argosy", PROFILE_LABEL: label(job.model.name)}
    template = under_pool_template(job.pool, {"metadata": {"labels": labels}, "spec": _pod(job)}, _TAKEN, _OWN)
    if job.gpus:
        (container,) = template["spec"]["containers"]
        limits = {"limits": {GPU_RESOURCE: str(job.gpus)}}
        container["resources"] = overlay(container.get("resources", {}), limits)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": profile_name(job.model.name), "namespace": job.namespace, "labels": labels},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": job.deadline_s,
            "ttlSecondsAfterFinished": TTL_S,
            "template": template,
        },
    }


def _pod(job: ProfileJob) -> dict[str, Any]:
    claims = volumes.claims_of(_uris(job.model))
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": _GRACE_S,
        "securityContext": pod_security(),
        "containers": [_container(job, claims)],
        "volumes": [
            {"name": _TMP, "emptyDir": {}},
            *(volumes.claim_volume(volume_name(claim), claim, read_only=True) for claim in claims),
        ],
    }
    if job.pool.spec.storage.service_account_name:
        spec["serviceAccountName"] = job.pool.spec.storage.service_account_name
    if terms := _node_terms(job.requires, on_gpu=job.gpus > 0):
        required = {"nodeSelectorTerms": terms}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return spec


def _container(job: ProfileJob, claims: Iterable[str]) -> dict[str, Any]:
    names = (job.pool.spec.storage.secret_name, job.model.spec.storage.secret_name)
    secrets = [{"secretRef": {"name": name}} for name in dict.fromkeys(names) if name]
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": job.image,
        "command": list(_COMMAND),
        "env": [
            dict(HOME),
            {"name": job.variable, "value": _value(job.request)},
            *(dict(variable) for variable in NO_GPUS if not job.gpus),
        ],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            volumes.mount(_TMP, volumes.TEMPORARY),
            *(volumes.mount(volume_name(claim), volumes.claim_path(claim), read_only=True) for claim in claims),
        ],
        "securityContext": container_security(),
    }
    return {**container, "envFrom": secrets} if secrets else container


def _value(request: str) -> str:
    """Return a request as the variable has it: files of PersistentVolumeClaims are where the claims are mounted, and
    the kubelet expands nothing.
    """
    return request.replace('"pvc://', f'"file://{volumes.CLAIMS}/').replace("$", "$$")


def _uris(model: InferenceModel) -> Iterator[str]:
    return (source.storage_uri for source in model.spec.declared.values())


def _node_terms(requires: NodeRequirements, *, on_gpu: bool) -> list[KubernetesObject]:
    """Return the alternatives of node labels, one of which a node must have."""
    common = [_is_in(key, value) for key, value in requires.labels]
    if on_gpu and requires.products:
        common.append(_is_in(PRODUCT, *sorted(requires.products)))
    ranges = capability_terms(requires.capability) if on_gpu else [[]]
    return [{"matchExpressions": [*common, *one]} for one in ranges if common or one]


def capability_terms(capability: CapabilityRange) -> list[list[KubernetesObject]]:
    """Return the labels of nodes whose GPUs have a compute capability of a range, as alternatives."""
    if not capability.terms:
        return [[]]
    minors = {major: [n for n in range(10) if capability.accepts(f"{major}.{n}")] for major in range(_LARGEST + 1)}
    first_of_rest = _LARGEST + 1
    while len(minors[first_of_rest - 1]) == len(range(10)) and first_of_rest > 1:
        first_of_rest -= 1
    alternatives = [
        [_is_in(_MAJOR, str(major)), *([_is_in(_MINOR, *map(str, of_major))] if len(of_major) < len(range(10)) else [])]
        for major, of_major in minors.items()
        if of_major and major < first_of_rest
    ]
    if first_of_rest <= _LARGEST:
        alternatives.append([{"key": _MAJOR, "operator": "Gt", "values": [str(first_of_rest - 1)]}])
    return alternatives


def _is_in(key: str, *values: str) -> KubernetesObject:
    return {"key": key, "operator": "In", "values": list(values)}

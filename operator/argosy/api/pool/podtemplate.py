"""A pool's Pod template: what is laid over the Pods of its servers, and what of them is Argosy's alone.

The overlay is merged by Kubernetes' own merge keys (render/workloads/pods/overlay.py). What the plan, the agent and the
way to a server depend on is refused here, by path, when the pool is declared; what else is wrong with it the API server
says when the Pod is applied.
"""

from collections.abc import Iterator, Mapping
from posixpath import normpath
from typing import Annotated, Any, ClassVar

from pydantic import Field, StringConstraints

from argosy.api.values.base import ApiModel, Fault, Rule

SERVER, AGENT = "server", "agent"
"""The containers of a server's Pod; any other is a sidecar."""
CONTROL_TOKEN = "control-token"
"""The container that makes the server's control token before these start, and the volume that the token is in."""
OWN_VOLUMES = frozenset((CONTROL_TOKEN, "models", "model-cache", "storage-secret", "token", "server-tmp", "agent-tmp"))
CLAIM_VOLUMES, SECRET_VOLUMES = "claim-", "secret-"
"""How the names of volumes begin that are models' PersistentVolumeClaims, and models' own Secrets."""
OWN_PORTS = frozenset((8000, 8001, 8002))
LABEL_VALUE = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"
_DOMAIN = "argosy.dev"
_OWN_LABELS = frozenset(("app.kubernetes.io/managed-by", "app.kubernetes.io/part-of", "pod-template-hash"))
_GPUS = "nvidia.com/"
_GPU_VARIABLES = frozenset(("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"))

_POD: Mapping[str, str] = {
    "nodeName": "the plan decides each server's node; bound them with spec.nodeSelector",
    "nodeSelector": "set spec.nodeSelector, which the plan reads",
    "tolerations": "set spec.tolerations, which the plan reads",
    "serviceAccountName": "set spec.storage.serviceAccountName",
    "serviceAccount": "set spec.storage.serviceAccountName",
    "automountServiceAccountToken": "only the agent has a token",
    "readinessGates": "Argosy's gate tells when the first models are loaded",
    "restartPolicy": "a server that ends is started again",
    "terminationGracePeriodSeconds": "it is what a server needs to finish its requests",
    "hostNetwork": "servers of one node would want the same ports",
}
_OWN_COMMAND = "Argosy starts it"
_CONTAINER: Mapping[str, Mapping[str, str]] = {
    SERVER: {
        "image": "set spec.runtime.image",
        "args": "set spec.runtime.args",
        "command": _OWN_COMMAND,
        "ports": "Services lead to those that it has",
        "startupProbe": "Argosy decides when a server is up",
        "livenessProbe": "Argosy decides when a server is up",
        "readinessProbe": "Argosy decides when a server is up",
        "lifecycle": "Argosy decides how a server ends",
        "restartPolicy": "a server that ends is started again",
    },
    AGENT: {
        "image": "it is the release's, as the chart sets it",
        "args": _OWN_COMMAND,
        "command": _OWN_COMMAND,
        "envFrom": "set spec.storage.secretName",
        "lifecycle": "Argosy decides how it ends",
        "restartPolicy": "an agent that ends is started again",
    },
}
_VARIABLES: Mapping[str, frozenset[str]] = {AGENT: frozenset(("POD_UID",))}
_PATHS: Mapping[str, tuple[str, ...]] = {
    SERVER: ("/models", "/tmp", "/secrets/control"),
    AGENT: (
        "/models",
        "/tmp",
        "/cache",
        "/pvc",
        "/secrets/storage",
        "/secrets/named",
        "/secrets/control",
        "/var/run/secrets/kubernetes.io/serviceaccount",
    ),
}
_SCRATCH = "/tmp"
"""Whose sub-folders may be volumes of the user's."""

Path = tuple[str | int, ...]
Labels = dict[str, Annotated[str, StringConstraints(pattern=LABEL_VALUE, max_length=63)]]


def _own_keys(keys: Mapping[str, str], field: str) -> Iterator[Fault]:
    for key in keys:
        prefix = key.partition("/")[0] if "/" in key else ""
        if key in _OWN_LABELS or prefix == _DOMAIN or prefix.endswith(f".{_DOMAIN}"):
            yield Fault("is set by Argosy or by the Deployment; choose another key", (field, key))


class PodMetadata(ApiModel):
    """Labels and annotations of the servers' Pods."""

    labels: Labels = Field(default_factory=dict, max_length=64, description="Labels beside Argosy's. Default: none.")
    annotations: dict[str, str] = Field(
        default_factory=dict, max_length=64, description="Annotations beside Argosy's. Default: none."
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(("labels",), lambda metadata: _own_keys(metadata.labels, "labels")),
        Rule(("annotations",), lambda metadata: _own_keys(metadata.annotations, "annotations")),
    )


class PodTemplate(ApiModel):
    """What is laid over the Pods of the pool's servers."""

    metadata: PodMetadata = Field(default_factory=PodMetadata, description="Labels and annotations. Default: none.")
    spec: dict[str, Any] = Field(
        default_factory=dict,
        description="A Pod's spec in part, merged into each server's as kubectl merges: lists by their keys, the rest "
        "as a whole; null removes. The containers are called server and agent; others are sidecars. Default: nothing.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )

    rules: ClassVar[tuple[Rule, ...]] = (Rule(("spec",), lambda template: _spec_faults(template.spec)),)

    def server_variables(self) -> list[tuple[Path, Mapping[str, Any]]]:
        """Return the environment variables that are set for the server, each with its path from the template on."""
        found: list[tuple[Path, Mapping[str, Any]]] = []
        for index, container in enumerate(self.spec.get("containers", ())):
            if container["name"] == SERVER:
                path: Path = ("spec", "containers", index, "env")
                found += [((*path, at), each) for at, each in enumerate(container.get("env", ()))]
        return found


def _spec_faults(spec: Mapping[str, Any]) -> list[Fault]:
    """All of a Pod's spec that is not the user's to say, or that cannot be merged."""
    found: list[Fault] = [*_owned(spec, _POD, ("spec",)), *_directives(spec, ("spec",))]
    affinity = _object(spec, "affinity", ("spec",), found)
    found += _owned(affinity, {"nodeAffinity": _POD["nodeName"]}, ("spec", "affinity"))
    for volume, path in _elements(spec, "volumes", "name", ("spec",), found):
        if _is_own_volume(volume["name"]):
            found.append(Fault("is a volume of Argosy's; choose another name", (*path, "name")))
    for field in ("containers", "initContainers"):
        for container, path in _elements(spec, field, "name", ("spec",), found):
            initial = field == "initContainers" and container["name"] in _CONTAINER
            if initial or container["name"] == CONTROL_TOKEN:
                found.append(Fault("is a container of Argosy's; choose another name", (*path, "name")))
            _check_container(container, path, found)
    return found


def _check_container(container: Mapping[str, Any], path: Path, found: list[Fault]) -> None:
    name = container["name"]
    found += _owned(container, _CONTAINER.get(name, {}), path)
    resources = _object(container, "resources", path, found)
    for kind in ("requests", "limits"):
        for resource in _object(resources, kind, (*path, "resources"), found):
            if resource.startswith(_GPUS):
                said = "the plan decides each server's GPUs; bound them with spec.maxGpusPerServer"
                found.append(Fault(said, (*path, "resources", kind, resource)))
    for variable, at in _elements(container, "env", "name", path, found):
        if variable["name"] in _GPU_VARIABLES:
            found.append(Fault("which GPUs a server sees is decided by the plan", (*at, "name")))
        elif variable["name"] in _VARIABLES.get(name, ()):
            found.append(Fault("is set by Argosy", (*at, "name")))
    for mount, at in _elements(container, "volumeMounts", "mountPath", path, found):
        _check_mount(name, mount, at, found)
    if name not in _CONTAINER:
        _check_ports(container, path, found)


def _check_mount(container: str, mount: Mapping[str, Any], path: Path, found: list[Fault]) -> None:
    if _is_own_volume(mount.get("name")):
        found.append(Fault("is a volume of Argosy's; mount one of your own", (*path, "name")))
    place = normpath(mount["mountPath"]).rstrip("/") + "/"
    for own in _PATHS.get(container, ()):
        below = place.startswith(f"{own}/") and (own != _SCRATCH or place == f"{own}/")
        if below or f"{own}/".startswith(place):
            found.append(Fault(f"would hide {own}, where Argosy mounts; choose another path", (*path, "mountPath")))
            return


def _check_ports(container: Mapping[str, Any], path: Path, found: list[Fault]) -> None:
    """A sidecar has the Pod's address, and so no port of the server's."""
    ports = container.get("ports")
    for index, port in enumerate(ports if isinstance(ports, list) else ()):
        if isinstance(port, Mapping) and port.get("containerPort") in OWN_PORTS:
            where = (*path, "ports", index, "containerPort")
            found.append(Fault("is a port of the server's, which has the same address; choose another", where))


def _owned(holder: Mapping[str, Any], table: Mapping[str, str], path: Path) -> Iterator[Fault]:
    for field, way_out in table.items():
        if field in holder:
            yield Fault(f"is not the template's to set: {way_out}", (*path, field))


def _is_own_volume(name: object) -> bool:
    return isinstance(name, str) and (name in OWN_VOLUMES or name.startswith((CLAIM_VOLUMES, SECRET_VOLUMES)))


def _object(holder: Mapping[str, Any], field: str, path: Path, found: list[Fault]) -> Mapping[str, Any]:
    """The map in a field, empty where it is left out; a fault where it is no map, as null is none."""
    value = holder.get(field, {})
    if isinstance(value, Mapping):
        return value
    found.append(Fault(f"expected a map; found {value!r}", (*path, field)))
    return {}


def _elements(
    holder: Mapping[str, Any], field: str, key: str, path: Path, found: list[Fault]
) -> Iterator[tuple[Mapping[str, Any], Path]]:
    """The elements of a list that is merged by a key, each with its path; faults where it cannot be."""
    value = holder.get(field, [])
    if not isinstance(value, list):
        found.append(Fault(f"expected a list; found {value!r}", (*path, field)))
        return
    seen: set[str] = set()
    for index, element in enumerate(value):
        at = (*path, field, index)
        name = element.get(key) if isinstance(element, Mapping) else None
        if not isinstance(name, str):
            found.append(Fault(f"needs {key}, by which it is merged", at))
        elif name in seen:
            found.append(Fault(f"{name!r} is here already; join the two", (*at, key)))
        else:
            seen.add(name)
            yield element, at


def _directives(value: Any, path: Path) -> Iterator[Fault]:
    """kubectl's instructions to a merge, such as `$patch`."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key.startswith("$"):
                said = "is an instruction of kubectl's patches, and taken by none here; null removes a field"
                yield Fault(said, (*path, key))
            else:
                yield from _directives(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _directives(inner, (*path, index))

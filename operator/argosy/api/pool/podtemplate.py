"""A pool's Pod template: changes to the Pods of its servers.

It is merged by Kubernetes' merge keys (render/workloads/pods/overlay.py). Fields that the plan, the agent and routing
depend on are rejected here, by path, when the pool is declared. The API server rejects other errors when the Pod is
applied.
"""

import json
from collections.abc import Iterator, Mapping
from posixpath import normpath
from typing import Annotated, Any, ClassVar

from pydantic import Field, StringConstraints

from argosy.api.values.base import ApiModel, Fault, Rule
from argosy.api.values.meta import LABEL_VALUE

SERVER, AGENT = "server", "agent"
"""The containers of a server's Pod; any other is a sidecar."""
CONTROL_TOKEN = "control-token"
"""The container that makes the server's control token before these start, and the volume that the token is in."""
OPENAI_KEYS = "openai-api-keys"
"""The volume with the keys of OpenAI's API."""
OWN_VOLUMES = frozenset(
    (CONTROL_TOKEN, OPENAI_KEYS, "models", "model-cache", "storage-secret", "token", "server-tmp", "agent-tmp")
)
CLAIM_VOLUMES, SECRET_VOLUMES = "claim-", "secret-"
"""How the names of volumes begin that are models' PersistentVolumeClaims, and models' own Secrets."""
OWN_PORTS = frozenset((8000, 8001, 8002))
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
    SERVER: ("/models", "/tmp", "/secrets/control", "/secrets/openai-api-keys"),
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

    labels: Labels = Field(
        default_factory=dict, max_length=64, description="Labels in addition to Argosy's. Default: none."
    )
    annotations: dict[str, str] = Field(
        default_factory=dict, max_length=64, description="Annotations in addition to Argosy's. Default: none."
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(("labels",), lambda metadata: _own_keys(metadata.labels, "labels")),
        Rule(("annotations",), lambda metadata: _own_keys(metadata.annotations, "annotations")),
    )


class PodTemplate(ApiModel):
    """Changes to the Pods of the pool's servers."""

    metadata: PodMetadata = Field(default_factory=PodMetadata, description="Labels and annotations. Default: none.")
    spec: dict[str, Any] = Field(
        default_factory=dict,
        description="A partial Pod spec that is merged into each server's as kubectl does: lists by their merge "
        "keys, other values as a whole; null removes a field. The containers are named server and "
        "agent; others are sidecars. Default: nothing.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )

    rules: ClassVar[tuple[Rule, ...]] = (Rule(("spec",), lambda template: _spec_faults(template.spec)),)

    def __eq__(self, other: object) -> bool:
        """Compare as JSON does: Python takes 1, 1.0 and true for equal, of which a field of a Pod takes one at most."""
        return super().__eq__(other) and isinstance(other, PodTemplate) and _text(self.spec) == _text(other.spec)

    def server_variables(self) -> list[tuple[Path, Mapping[str, Any]]]:
        """Return the environment variables of the server with their paths in the template."""
        variables: list[tuple[Path, Mapping[str, Any]]] = []
        for index, container in enumerate(self.spec.get("containers", ())):
            if container["name"] == SERVER:
                path: Path = ("spec", "containers", index, "env")
                variables += [((*path, at), variable) for at, variable in enumerate(container.get("env", ()))]
        return variables


def _text(spec: Mapping[str, Any]) -> str:
    return json.dumps(spec, sort_keys=True, default=str)


def _spec_faults(spec: Mapping[str, Any]) -> list[Fault]:
    """Return the errors of a Pod's spec: fields that Argosy sets, and lists that cannot be merged."""
    errors: list[Fault] = [*_owned(spec, _POD, ("spec",)), *_directives(spec, ("spec",))]
    affinity = _object(spec, "affinity", ("spec",), errors)
    errors += _owned(affinity, {"nodeAffinity": _POD["nodeName"]}, ("spec", "affinity"))
    for volume, path in _elements(spec, "volumes", "name", ("spec",), errors):
        if _is_own_volume(volume["name"]):
            errors.append(Fault("is a volume of Argosy's; choose another name", (*path, "name")))
    for field in ("containers", "initContainers"):
        for container, path in _elements(spec, field, "name", ("spec",), errors):
            initial = field == "initContainers" and container["name"] in _CONTAINER
            if initial or container["name"] == CONTROL_TOKEN:
                errors.append(Fault("is a container of Argosy's; choose another name", (*path, "name")))
            _check_container(container, path, errors)
    return errors


def _check_container(container: Mapping[str, Any], path: Path, errors: list[Fault]) -> None:
    name = container["name"]
    errors += _owned(container, _CONTAINER.get(name, {}), path)
    resources = _object(container, "resources", path, errors)
    for kind in ("requests", "limits"):
        for resource in _object(resources, kind, (*path, "resources"), errors):
            if resource.startswith(_GPUS):
                message = "the plan decides each server's GPUs; bound them with spec.maxGpusPerServer"
                errors.append(Fault(message, (*path, "resources", kind, resource)))
    for variable, at in _elements(container, "env", "name", path, errors):
        if variable["name"] in _GPU_VARIABLES:
            errors.append(Fault("which GPUs a server sees is decided by the plan", (*at, "name")))
        elif variable["name"] in _VARIABLES.get(name, ()):
            errors.append(Fault("is set by Argosy", (*at, "name")))
    for mount, at in _elements(container, "volumeMounts", "mountPath", path, errors):
        _check_mount(name, mount, at, errors)
    if name not in _CONTAINER:
        _check_ports(container, path, errors)


def _check_mount(container: str, mount: Mapping[str, Any], path: Path, errors: list[Fault]) -> None:
    if _is_own_volume(mount.get("name")):
        errors.append(Fault("is a volume of Argosy's; mount one of your own", (*path, "name")))
    mounted = normpath(mount["mountPath"]).rstrip("/") + "/"
    for own in _PATHS.get(container, ()):
        below = mounted.startswith(f"{own}/") and (own != _SCRATCH or mounted == f"{own}/")
        if below or f"{own}/".startswith(mounted):
            errors.append(Fault(f"would hide {own}, where Argosy mounts; choose another path", (*path, "mountPath")))
            return


def _check_ports(container: Mapping[str, Any], path: Path, errors: list[Fault]) -> None:
    """Check that a sidecar uses no port of the server, whose address it shares."""
    ports = container.get("ports")
    for index, port in enumerate(ports if isinstance(ports, list) else ()):
        if isinstance(port, Mapping) and port.get("containerPort") in OWN_PORTS:
            where = (*path, "ports", index, "containerPort")
            errors.append(Fault("is a port of the server's, which has the same address; choose another", where))


def _owned(holder: Mapping[str, Any], table: Mapping[str, str], path: Path) -> Iterator[Fault]:
    for field, way_out in table.items():
        if field in holder:
            yield Fault(f"is not the template's to set: {way_out}", (*path, field))


def _is_own_volume(name: object) -> bool:
    return isinstance(name, str) and (name in OWN_VOLUMES or name.startswith((CLAIM_VOLUMES, SECRET_VOLUMES)))


def _object(holder: Mapping[str, Any], field: str, path: Path, errors: list[Fault]) -> Mapping[str, Any]:
    """Return the map in a field, or an empty one. Add an error to `errors` if it is no map; null is none."""
    value = holder.get(field, {})
    if isinstance(value, Mapping):
        return value
    errors.append(Fault(f"expected a map; found {value!r}", (*path, field)))
    return {}


def _elements(
    holder: Mapping[str, Any], field: str, key: str, path: Path, errors: list[Fault]
) -> Iterator[tuple[Mapping[str, Any], Path]]:
    """Yield the elements of a list that is merged by a key, with their paths. Add `errors` if it cannot be."""
    value = holder.get(field, [])
    if not isinstance(value, list):
        errors.append(Fault(f"expected a list; found {value!r}", (*path, field)))
        return
    seen: set[str] = set()
    for index, element in enumerate(value):
        at = (*path, field, index)
        name = element.get(key) if isinstance(element, Mapping) else None
        if not isinstance(name, str):
            errors.append(Fault(f"needs {key}, by which it is merged", at))
        elif name in seen:
            errors.append(Fault(f"{name!r} is here already; join the two", (*at, key)))
        else:
            seen.add(name)
            yield element, at


def _directives(value: Any, path: Path) -> Iterator[Fault]:
    """Yield an error for each merge directive of kubectl, such as `$patch`."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key.startswith("$"):
                message = "is an instruction of kubectl's patches, and taken by none here; null removes a field"
                yield Fault(message, (*path, key))
            else:
                yield from _directives(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _directives(inner, (*path, index))

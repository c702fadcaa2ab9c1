"""The CustomResourceDefinitions, generated from the models."""

from dataclasses import dataclass
from typing import Any

import yaml

from argosy.api.crd.schema import Schema, structural_schema
from argosy.api.ensemble import Ensemble, EnsembleSpec
from argosy.api.inferencemodel import InferenceModel, InferenceModelSpec
from argosy.api.servingpool import ServingPool, ServingPoolSpec
from argosy.api.status import EnsembleStatus, InferenceModelStatus, ServingPoolStatus
from argosy.api.statusparts import StatusPart
from argosy.api.values.meta import GROUP, VERSION, ApiResource

HEADER = "# Generated from operator/argosy/api by `argosy crds`. Change the models, and generate it again.\n"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`. A `priority` above 0 shows it only with `-o wide`."""

    name: str
    json_path: str
    kind: str = "string"
    description: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Definition:
    """What a CRD has in addition to its schema."""

    kind: type[ApiResource]
    spec: type[Any]
    status: type[StatusPart]
    plural: str
    short_name: str
    columns: tuple[Column, ...]


def _condition(kind: str, field: str = "status") -> str:
    return f'.status.conditions[?(@.type=="{kind}")].{field}'


_READY = Column("Ready", _condition("Ready"), description="Whether it serves what the spec says.")
_REASON = Column("Reason", _condition("Ready", "reason"), description="The reason of the condition Ready.")
_POOL = Column("Pool", ".spec.poolRef.name", description="The pool that serves it.")
_URL = Column("URL", ".status.url", description="The URL of requests over HTTP.", priority=1)
_ENGINE = Column("Engine", _condition("EngineReady", "reason"), description="The state of its engines.", priority=1)
_MESSAGE = Column(
    "Message", _condition("Ready", "message"), description="The message of the condition Ready.", priority=1
)
_AGE = Column("Age", ".metadata.creationTimestamp", "date", "Time since its creation.")
_VERSION = Column("Version", ".status.activeVersion", "integer", "The version that most requests reach.")
_ROLLOUT = Column("Rollout", ".status.rollout.phase", description="The phase of its rollout.")
_TRAFFIC = Column(
    "Traffic",
    ".status.rollout.desiredTraffic",
    description="The share of requests that the candidate of its rollout is to get.",
    priority=1,
)
_REPLICAS = Column("Replicas", ".status.replicas", "integer", "Servers that should have it.")
_INSTANCES = Column("Instances", ".status.scaling.instances", "integer", "Instances on each device of a replica.")
_SCALING = Column("Scaling", _condition("Scaling", "reason"), description="The reason for the number of replicas.")
_BOTTLENECK = Column("Bottleneck", ".status.bottleneck.kind", description="The bottleneck of its requests.")
_WHY = Column("Why", ".status.scaling.message", description="The message of the last scaling decision.", priority=1)
_TOKENS = Column(
    "Tokens/s", ".status.language.tokensPerSecond", "integer", "Tokens that its engines generate each second."
)
_AVAILABLE = Column("Available", ".status.availableReplicas", "integer", "Servers on which it is loaded.")

DEFINITIONS = (
    Definition(
        InferenceModel,
        InferenceModelSpec,
        InferenceModelStatus,
        "inferencemodels",
        "amodel",
        (
            _READY,
            _REASON,
            _POOL,
            Column("Format", ".spec.modelFormat.name", description="The model's format.", priority=1),
            _VERSION,
            _ROLLOUT,
            _REPLICAS,
            _AVAILABLE,
            _INSTANCES,
            _SCALING,
            _TOKENS,
            _BOTTLENECK,
            Column("Regime", ".status.regime.variant", description="The variant that new requests go to."),
            _ENGINE,
            _TRAFFIC,
            _URL,
            _WHY,
            _MESSAGE,
            _AGE,
        ),
    ),
    Definition(
        Ensemble,
        EnsembleSpec,
        EnsembleStatus,
        "ensembles",
        "aens",
        (
            _READY,
            _REASON,
            _POOL,
            _VERSION,
            _ROLLOUT,
            _REPLICAS,
            _AVAILABLE,
            _SCALING,
            _BOTTLENECK,
            _TRAFFIC,
            _URL,
            _WHY,
            _MESSAGE,
            _AGE,
        ),
    ),
    Definition(
        ServingPool,
        ServingPoolSpec,
        ServingPoolStatus,
        "servingpools",
        "apool",
        (
            _READY,
            _REASON,
            Column("Runtime", ".spec.runtime.name", description="The inference server."),
            Column("Servers", ".status.replicas", "integer", "The number of servers."),
            Column("Used", ".status.gpus.used", "integer", "GPUs that servers use."),
            Column("Free", ".status.gpus.free", "integer", "Free GPUs."),
            _URL,
            _MESSAGE,
            _AGE,
        ),
    ),
)


def crd(definition: Definition) -> Schema:
    """Return the CustomResourceDefinition of one kind, as a plain object."""
    kind = definition.kind.__name__
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{definition.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": definition.plural,
                "singular": kind.lower(),
                "shortNames": [definition.short_name],
                "categories": ["argosy"],
            },
            "versions": [_version(definition)],
        },
    }


def _version(definition: Definition) -> Schema:
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [_column(column) for column in definition.columns],
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "schema": {"openAPIV3Schema": _root(definition)},
    }


def _column(column: Column) -> Schema:
    printed: Schema = {
        "name": column.name,
        "type": column.kind,
        "jsonPath": column.json_path,
        "description": column.description,
    }
    return printed | ({"priority": column.priority} if column.priority else {})


def _root(definition: Definition) -> Schema:
    described = {name: field.description for name, field in definition.kind.model_fields.items()}
    spec = structural_schema(definition.spec) | {"description": described["spec"]}
    status = structural_schema(definition.status, defaults=False) | {"description": described["status"]}
    return {
        "type": "object",
        "description": definition.kind.__doc__,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": described["api_version"]},
            "kind": {"type": "string", "description": described["kind"]},
            "metadata": {"type": "object"},  # the API server describes it, and accepts no other description
            "spec": spec,
            "status": status,
        },
    }


def crd_files() -> dict[str, str]:
    """Return the text of every CRD by file name. A comment on top names the source."""
    return {
        f"{GROUP}_{definition.plural}.yaml": HEADER
        + yaml.dump(crd(definition), Dumper=_PlainDumper, sort_keys=False, width=110, allow_unicode=True)
        for definition in DEFINITIONS
    }


class _PlainDumper(yaml.SafeDumper):
    """Dumps values that occur twice without YAML's anchors, which are hard to read."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

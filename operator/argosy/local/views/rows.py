"""Rows of a view, one for each resource, server and build, and the port of a view."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from argosy.api import Member
from argosy.api.conditions import ConditionType
from argosy.api.documents import Resource
from argosy.api.inferencemodel import InferenceModel
from argosy.api.model.modelformat import LANGUAGE_BACKENDS
from argosy.api.problems import Problem
from argosy.api.scalingstatus import ScalingStatus
from argosy.api.servingpool import ServingPool
from argosy.api.status import EnsembleStatus, PlacementStatus, Status
from argosy.local.rates import Rate
from argosy.rollout.state import Phase

NOT_TAKEN_OVER = (
    "some manifests have problems: a resource with a problem is served in its last valid revision, if it has one, and "
    "all others as declared"
)
_ORDER = {"InferenceModel": 0, "Ensemble": 1, "ServingPool": 2}


@dataclass(frozen=True, slots=True)
class Row:
    """A model, an ensemble or a pool.

    `ready`, `reason` and `message` are those of its Ready condition; `doing` is the operation in progress. Rates are
    by `served_name`. `instances` is the number on each device, empty for one. `scaling` is the message of its scaling
    status, `scaled` that of the newest change. `openai` is where OpenAI's API has it, empty where that has it nowhere.
    """

    kind: str
    name: str
    version: str
    ready: str
    reason: str
    where: str
    message: str
    doing: str = ""
    namespace: str = "default"
    served_name: str = ""
    instances: str = ""
    scaling: str = ""
    scaled: str = ""
    openai: str = ""

    @property
    def identity(self) -> str:
        """The resource's identity."""
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def address(self) -> str:
        """The line about OpenAI's API, empty where that has it nowhere."""
        return f"OpenAI's API: {self.openai}, model {self.served_name}" if self.openai else ""

    @property
    def summary(self) -> str:
        """The line to print when the state changes."""
        version = f" v{self.version}" if self.version else ""
        message = f": {self.message}" if self.message else ""
        return f"{self.kind} {self.name}{version}: Ready={self.ready} ({self.reason}){message}"


@dataclass(frozen=True, slots=True)
class ServerRow:
    """A server: its addresses, and its error, which is empty where there is none."""

    name: str
    url: str
    grpc: str
    metrics: str
    live: bool
    error: str = ""


@dataclass(frozen=True, slots=True)
class BuildRow:
    """A build of an engine, with the models that it is for, its progress, and the builder's last line."""

    name: str
    models: str
    engine: str
    state: str
    phase: str
    percent: int
    line: str

    @property
    def doing(self) -> str:
        """The operation in progress, for the row of its model."""
        return f"{self.phase} {self.percent} %" if self.phase else self.state

    @property
    def summary(self) -> str:
        """The line to print when the phase changes."""
        return f"build of {self.models} ({self.engine}): {self.phase or self.state}"


class View(Protocol):
    """Shows the state of everything."""

    def problems(self, problems: Sequence[Problem]) -> None:
        """Show the errors of the manifests after the last edit; an empty sequence means that they are valid."""

    def note(self, text: str) -> None:
        """Show one line about an event."""

    def update(
        self,
        rows: Sequence[Row],
        servers: Sequence[ServerRow],
        rates: Mapping[str, Rate],
        builds: Sequence[BuildRow] = (),
    ) -> None:
        """Show the state of everything now."""

    def close(self) -> None:
        """Stop showing anything."""


def rows(resources: Sequence[Resource], statuses: Mapping[str, Status], doing: Mapping[str, str]) -> list[Row]:
    """Return a row for each resource with a status, pools last.

    `doing` has operations in progress by a model's served name or by its identity.
    """
    ordered = sorted(resources, key=lambda resource: (_ORDER[resource.kind], resource.namespace, resource.name))
    return [
        _row(resource, status, doing.get(resource.identity, "") or doing.get(_served_name(resource), ""))
        for resource in ordered
        if (status := statuses.get(resource.identity)) is not None
    ]


def _served_name(resource: Resource) -> str:
    return resource.name if isinstance(resource, ServingPool) else resource.served_name


def _row(resource: Resource, status: Status, doing: str) -> Row:
    ready = status.condition(ConditionType.READY)
    is_pool = isinstance(resource, ServingPool)
    return Row(
        kind=resource.kind,
        name=resource.name,
        version="" if isinstance(resource, ServingPool) else _version(resource, status),
        ready=ready.status if ready else "Unknown",
        reason=ready.reason if ready else "",
        where="" if is_pool else _where(getattr(status, "placement", ())),
        message=ready.message if ready else "",
        doing="" if is_pool else doing,
        namespace=resource.namespace,
        served_name="" if is_pool else _served_name(resource),
        openai=_openai(resource, status),
        **_scaling(getattr(status, "scaling", None)),
    )


def _openai(resource: Resource, status: Status) -> str:
    """Return the base URL for clients of OpenAI's API, of a language model or a chat that answers."""
    if isinstance(resource, ServingPool):
        return ""
    is_language_model = isinstance(resource, InferenceModel) and resource.spec.backend in LANGUAGE_BACKENDS
    if not (is_language_model or resource.spec.chat):
        return ""
    base, path, _ = str(getattr(status, "url", "")).partition("/v2/models/")
    return f"{base}/v1" if path else ""


def _scaling(scaling: ScalingStatus | None) -> dict[str, str]:
    """Return the fields about scaling; empty for a model that is not scaled by measurements."""
    if scaling is None:
        return {}
    instances = str(scaling.instances) if scaling.instances > 1 else ""
    follows = bool(scaling.metric or scaling.history)
    newest = scaling.history[0].message if scaling.history else ""
    return {"instances": instances, "scaling": scaling.message if follows else "", "scaled": newest}


def _version(resource: Member, status: Status) -> str:
    """Return the version that is to serve, after the active one while they differ."""
    active, desired = getattr(status, "active_version", None), _desired_version(resource, status)
    return f"{active} → {desired}" if active not in (None, desired) else str(desired)


def _desired_version(resource: Member, status: Status) -> int:
    """Return the declared version; of an ensemble with a rollout, which numbers revisions, that of the newest one."""
    if isinstance(status, EnsembleStatus) and status.rollout is not None:
        rollout = status.rollout
        newest = rollout.stable if rollout.phase == Phase.ROLLING_BACK else rollout.candidate or rollout.stable
        if newest is not None:
            return newest.version
    return resource.spec.default_version


def _where(placement: Iterable[PlacementStatus]) -> str:
    return "; ".join(
        f"{replica.server} GPU {','.join(map(str, replica.gpus))}" if replica.gpus else replica.server
        for replica in placement
    )

"""API version, kind and metadata of resources."""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints

from argosy.api.values.base import ApiModel, Int
from argosy.api.values.identity import Identity, PoolKey

GROUP = "argosy.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
LABEL_KEY = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
LABEL_VALUE = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"
"""The key and the value of a Kubernetes label."""


def _no_newline(value: str) -> str:
    """Reject a name with a final newline, before which the pattern's `$` matches, too."""
    if "\n" in value:
        raise ValueError("must be one line")
    return value


Name = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=SUBDOMAIN), AfterValidator(_no_newline)]
"""A resource's name: a DNS-1123 subdomain of at most 253 characters."""
Namespace = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=LABEL), AfterValidator(_no_newline)]
"""A namespace: a DNS-1123 label of at most 63 characters."""

MODEL_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.:@=~+-]*$"
ModelName = Annotated[
    str, StringConstraints(min_length=1, max_length=253, pattern=MODEL_NAME), AfterValidator(_no_newline)
]
"""What clients call a model: a folder's name that needs no escaping in a URL."""


class ObjectMeta(ApiModel):
    """The part of Kubernetes' ObjectMeta that Argosy reads. Other fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    name: Name = Field(description="The resource's name, unique for its kind in a namespace.")
    namespace: Namespace = Field(default="default", description="The resource's namespace.")
    labels: dict[str, str] = Field(default_factory=dict, description="Labels by which the resource can be selected.")
    annotations: dict[str, str] = Field(default_factory=dict, description="Notes for people and tools.")
    generation: Int = Field(default=0, description="Counts the spec's changes; set by the API server.")
    uid: str = Field(default="", description="Unique over time; set by the API server.")
    resource_version: str = Field(default="", description="The stored version; set by the API server.")
    creation_timestamp: str | None = Field(default=None, description="When it was created, RFC 3339.")
    deletion_timestamp: str | None = Field(default=None, description="When its deletion was requested, RFC 3339.")
    finalizers: tuple[str, ...] = Field(default=(), description="What must be done before it is deleted.")
    owner_references: tuple[dict[str, Any], ...] = Field(default=(), description="The objects that it is deleted with.")


class ApiResource(ApiModel):
    """A resource: type, metadata, spec and status. It makes its names once: a round asks for them many times."""

    metadata: ObjectMeta = Field(description="The resource's name, namespace and labels.")

    @cached_property
    def name(self) -> str:
        """`metadata.name`."""
        return self.metadata.name

    @cached_property
    def namespace(self) -> str:
        """`metadata.namespace`."""
        return self.metadata.namespace

    @cached_property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @cached_property
    def identity(self) -> Identity:
        """Its kind, namespace and name, as in messages."""
        metadata = self.metadata
        return Identity.of(type(self).__name__, metadata.namespace, metadata.name)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy, which makes names of its own: they may follow from what is updated."""
        copied = super().model_copy(update=update, deep=deep)
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied


RevisionHistoryLimit = Annotated[
    Int,
    Field(
        ge=0, le=100, description="The number of former specs that are retained as ControllerRevisions. Default: 10."
    ),
]


class PoolReference(ApiModel):
    """A ServingPool of the same namespace."""

    name: Name = Field(description="The pool's name.")


class PoolMember(ApiResource):
    """A member of a pool: a model or an ensemble."""

    spec: Any

    @cached_property
    def served_name(self) -> str:
        """Its name for clients: `spec.modelName`, or else `metadata.name`."""
        return self.spec.model_name or self.name

    @cached_property
    def pool_key(self) -> PoolKey:
        """The key of its pool."""
        return PoolKey.of(self.metadata.namespace, self.spec.pool_ref.name)

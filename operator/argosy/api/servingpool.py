"""ServingPool: servers on nodes, which models are packed on."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from argosy.api.model.scaling.scale import fewest_of, replicas_in_order
from argosy.api.pool.builds import Builds
from argosy.api.pool.podtemplate import PodTemplate
from argosy.api.pool.serverflags import ARGUMENTS_CEL, Arguments, RateLimit, ResponseCache, check_arguments
from argosy.api.status import ServingPoolStatus
from argosy.api.values.base import ApiModel, Fault, Flag, Int, Rule
from argosy.api.values.identity import PoolKey
from argosy.api.values.meta import ApiResource, Name, RevisionHistoryLimit
from argosy.api.values.quantity import Quantity, Share
from argosy.api.values.storage import AbsoluteFolder, StorageUri

WEB = r"^https?://[^ ]+$"


class RuntimeName(StrEnum):
    """The inference server."""

    ARGOSY = "argosy"
    TRITON = "triton"


class Runtime(ApiModel):
    """The inference server that the pool runs."""

    name: RuntimeName = Field(
        default=RuntimeName.ARGOSY,
        description="argosy, the bundled server, or triton, NVIDIA's. Default: argosy.",
    )
    image: str | None = Field(
        default=None,
        min_length=1,
        max_length=512,
        description="The container image. Default: the release's own for that runtime.",
    )
    args: Arguments = Field(
        default=(),
        max_length=64,
        description="Further flags of the server, each as --name=value. Default: none.",
    )
    pod_template: PodTemplate = Field(
        default_factory=PodTemplate, description="What is laid over the servers' Pods. Default: nothing."
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("args",),
            lambda runtime: check_arguments(runtime.args),
            cel=ARGUMENTS_CEL,
            says="args has a flag that Argosy sets itself",
        ),
    )


class Effect(StrEnum):
    """What a taint does to Pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class TolerationOperator(StrEnum):
    """How a toleration compares a taint's value."""

    EXISTS = "Exists"
    EQUAL = "Equal"


def _existing_has_no_value(toleration: "Toleration") -> Iterator[Fault]:
    if toleration.operator is TolerationOperator.EXISTS and toleration.value:
        yield Fault("must be empty when operator is Exists", ("value",))
    if not toleration.key and toleration.operator is not TolerationOperator.EXISTS:
        yield Fault("is required unless operator is Exists", ("key",))


class Toleration(ApiModel):
    """A taint that the servers put up with."""

    key: str = Field(
        default="",
        max_length=316,
        description="The taint's key. Default: empty, every key, with operator Exists.",
    )
    operator: TolerationOperator = Field(
        default=TolerationOperator.EQUAL, description="Exists or Equal. Default: Equal."
    )
    value: str = Field(default="", max_length=63, description="The taint's value, for Equal.")
    effect: Effect | None = Field(default=None, description="The taint's effect. Default: every effect.")
    toleration_seconds: Int | None = Field(
        default=None, description="Seconds to stay under NoExecute. Default: for ever."
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("key", "operator", "value"),
            _existing_has_no_value,
            cel="has(self.operator) && self.operator == 'Exists' ? !has(self.value) || self.value == '' "
            ": has(self.key) && self.key != ''",
            says="operator Exists takes no value, and Equal needs a key",
        ),
    )


class ModelCache(ApiModel):
    """Where servers keep the models they fetched."""

    claim_name: Name | None = Field(
        default=None,
        description="A PersistentVolumeClaim that the servers share. Default: each has a folder of its own.",
    )
    size_limit: Quantity | None = Field(
        default=None,
        description="The most it may hold, such as 200Gi; unused models go first. Default: no limit.",
    )


_READ_ONLY = ("hf", "oci", "http", "https")
_READ_ONLY_CEL = [f"self.storageUri.startsWith('{scheme}:')" for scheme in _READ_ONLY]


def _can_be_written_to(cache: "EngineCache") -> Iterator[Fault]:
    scheme = cache.storage_uri.partition(":")[0]
    if scheme in _READ_ONLY:
        message = (
            f"{scheme} is only read from, and engines are written; name a folder in s3, gs, az, abfss, pvc or file"
        )
        yield Fault(message, ("storageUri",))


class EngineCache(ApiModel):
    """Where built engines are kept for all."""

    storage_uri: StorageUri = Field(description="The folder of the engines: s3, gs, az, abfss, pvc or file.")

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("storage_uri",),
            _can_be_written_to,
            cel=f"!({' || '.join(_READ_ONLY_CEL)})",
            says="engines can be kept in s3, gs, az, abfss, pvc or file",
        ),
    )


class Storage(ApiModel):
    """Where models and engines are kept, and who may read them."""

    model_cache: ModelCache = Field(
        default_factory=ModelCache, description="Fetched models. Default: a folder per server."
    )
    engine_cache: EngineCache | None = Field(
        default=None, description="Built engines; required by models with spec.engine."
    )
    secret_name: Name | None = Field(
        default=None, description="A Secret with the storage's credentials. Default: none."
    )
    allowed_folders: tuple[AbsoluteFolder, ...] = Field(
        default=(),
        max_length=64,
        description="Folders of the servers' and builds' Pods that a storageUri file: may name, with what lies beneath "
        "them. Default: none, so that file: is refused.",
    )
    service_account_name: Name | None = Field(
        default=None, description="The servers' service account. Default: one of each server's own."
    )


class Packing(ApiModel):
    """How models are put on the servers."""

    consolidate: Flag = Field(
        default=False,
        description="Whether a model that serves may be moved in order to free a GPU. Default: false.",
    )


class Prometheus(ApiModel):
    """A Prometheus server, or what answers as one."""

    url: Annotated[str, StringConstraints(pattern=WEB, max_length=2048)] = Field(
        description="Its URL, such as http://prometheus.monitoring:9090."
    )
    secret_name: Name | None = Field(
        default=None,
        description="A Secret with its credentials: token, or username and password. Default: it asks for none.",
    )


class Monitoring(ApiModel):
    """Where measurements come from."""

    prometheus: Prometheus | None = Field(
        default=None,
        description="Prometheus, for autoscaling and canary analysis. Default: the servers are asked directly.",
    )


class ServingPoolSpec(ApiModel):
    """What is asked for."""

    runtime: Runtime = Field(default_factory=Runtime, description="The inference server. Default: argosy.")
    node_selector: dict[str, str] = Field(
        default_factory=dict, max_length=64, description="Labels that a node must have. Default: any node."
    )
    tolerations: tuple[Toleration, ...] = Field(
        default=(), max_length=64, description="Taints to put up with. Default: none."
    )
    max_gpus_per_server: Int | None = Field(
        default=None,
        ge=0,
        le=64,
        description="The most GPUs that a server may have; 0 for CPU servers. Default: what its models need.",
    )
    replicas: Int | None = Field(
        default=None,
        ge=0,
        le=10000,
        description="The servers there are; what /scale reads and writes. Default: as many as its models need, from "
        "minServers to maxServers.",
    )
    min_servers: Int = Field(default=0, ge=0, le=10000, description="The fewest servers. Default: 0.")
    max_servers: Int | None = Field(
        default=None, ge=1, le=10000, description="The most servers. Default: as many as the nodes hold."
    )
    memory_headroom: Share = Field(
        default=200,
        description='The share of each GPU\'s memory that is kept free, as "20%". Default: "20%".',
        json_schema_extra={"default": "20%"},
    )
    rate_limit: RateLimit | None = Field(
        default=None,
        description="Instances wait until the resources are free that their models ask for. Default: they do not.",
    )
    cache: ResponseCache | None = Field(default=None, description="The cache of answers of each server. Default: none.")
    storage: Storage = Field(default_factory=Storage, description="Where models and engines are kept.")
    builds: Builds = Field(default_factory=Builds, description="What builds of engines may use.")
    packing: Packing = Field(default_factory=Packing, description="How models are put on the servers.")
    monitoring: Monitoring = Field(default_factory=Monitoring, description="Where measurements come from.")
    max_disruption: Share = Field(
        default=250,
        description="The share of the servers that are given up at once where their Nodes are gone though they answer, "
        "and serve what no other server does; one at least. Beyond it all of them stay, and Stalled says so. "
        'Default: "25%".',
        json_schema_extra={"default": "25%"},
    )
    suspend: Flag = Field(
        default=False, description="Whether all servers are stopped and their GPUs freed. Default: false."
    )
    revision_history_limit: RevisionHistoryLimit = 10

    rules: ClassVar[tuple[Rule, ...]] = (replicas_in_order("min_servers", "max_servers"),)

    @property
    def build_secret(self) -> str | None:
        """The Secret with the credentials of builds."""
        return self.builds.secret_name or self.storage.secret_name

    def allows_build_in(self, image: str) -> bool:
        """Return whether a model's engine may be built in this image, which is not the release's."""
        return image == self.runtime.image or self.builds.allows(image)

    @property
    def fewest_servers(self) -> int:
        """`replicas` where it is set, else `minServers`."""
        return fewest_of(self.replicas, self.min_servers)

    @property
    def most_servers(self) -> int | None:
        """`replicas` where it is set, else `maxServers`; None without a limit."""
        return self.max_servers if self.replicas is None else self.replicas


class ServingPool(ApiResource):
    """A set of servers on nodes, which models are packed on."""

    api_version: Literal["argosy.dev/v1alpha1"] = Field(
        default="argosy.dev/v1alpha1", description="The API's group and version."
    )
    kind: Literal["ServingPool"] = Field(default="ServingPool", description="ServingPool.")
    spec: ServingPoolSpec = Field(
        default_factory=ServingPoolSpec, description="What is asked for. The operator never writes here."
    )
    status: ServingPoolStatus | None = Field(default=None, description="What is so; written by the operator.")

    @property
    def key(self) -> PoolKey:
        """What its members, servers and objects are told by."""
        return PoolKey.of(self.namespace, self.name)

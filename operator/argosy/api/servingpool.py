"""The resource ServingPool: servers on nodes, on which models are packed."""

from collections.abc import Iterator
from enum import StrEnum
from functools import cached_property
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from argosy.api.model.rollout.analysis import AnalysisTemplate, named_once
from argosy.api.model.scaling.scale import fewest_of, replicas_in_order
from argosy.api.pool.builds import Builds
from argosy.api.pool.openai import OpenAi, api_key_faults
from argosy.api.pool.packing import Packing
from argosy.api.pool.podtemplate import PodTemplate
from argosy.api.pool.serverflags import ARGUMENTS_CEL, Arguments, RateLimit, ResponseCache, check_arguments
from argosy.api.pool.tracing import WEB, Tracing, tracing_faults
from argosy.api.status import ServingPoolStatus
from argosy.api.values.base import ApiModel, Fault, Flag, Int, Rule
from argosy.api.values.identity import PoolKey
from argosy.api.values.meta import ApiResource, Name, RevisionHistoryLimit
from argosy.api.values.quantity import THOUSANDTHS, Quantity, Share
from argosy.api.values.storage import AbsoluteFolder, StorageUri
from argosy.api.values.tensors import BY_NAME


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
        description="The container image. Default: the release's image for that runtime.",
    )
    args: Arguments = Field(
        default=(),
        max_length=64,
        description="Further flags of the server, each as --name=value. Default: none.",
    )
    pod_template: PodTemplate = Field(
        default_factory=PodTemplate, description="Changes to the servers' Pods. Default: none."
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
    """The effect of a taint on Pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class TolerationOperator(StrEnum):
    """How a toleration matches a taint's value."""

    EXISTS = "Exists"
    EQUAL = "Equal"


def _existing_has_no_value(toleration: "Toleration") -> Iterator[Fault]:
    if toleration.operator is TolerationOperator.EXISTS and toleration.value:
        yield Fault("must be empty when operator is Exists", ("value",))
    if not toleration.key and toleration.operator is not TolerationOperator.EXISTS:
        yield Fault("is required unless operator is Exists", ("key",))


class Toleration(ApiModel):
    """A taint that the servers tolerate."""

    key: str = Field(
        default="",
        max_length=316,
        description="The taint's key. Default: empty, which with operator Exists matches every key.",
    )
    operator: TolerationOperator = Field(
        default=TolerationOperator.EQUAL, description="Exists or Equal. Default: Equal."
    )
    value: str = Field(default="", max_length=63, description="The taint's value, for Equal.")
    effect: Effect | None = Field(default=None, description="The taint's effect. Default: every effect.")
    toleration_seconds: Int | None = Field(
        default=None, description="Seconds to stay under NoExecute. Default: forever."
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
    """The cache of fetched models."""

    claim_name: Name | None = Field(
        default=None,
        description="A PersistentVolumeClaim that the servers share. Default: each server has a folder of its own.",
    )
    size_limit: Quantity | None = Field(
        default=None,
        description="The size limit, such as 200Gi; unused models are evicted first. Default: no limit.",
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
    """The cache of built engines, which all servers and builds of the pool share."""

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
    """Caches of models and engines, and credentials to read them."""

    model_cache: ModelCache = Field(
        default_factory=ModelCache, description="The cache of fetched models. Default: a folder for each server."
    )
    engine_cache: EngineCache | None = Field(
        default=None, description="The cache of built engines; required by models with spec.engine."
    )
    secret_name: Name | None = Field(
        default=None, description="A Secret with the storage's credentials. Default: none."
    )
    allowed_folders: tuple[AbsoluteFolder, ...] = Field(
        default=(),
        max_length=64,
        description="Folders of the servers' and builds' Pods that file: URIs may name, including their subfolders. "
        "Default: none, so that file: URIs are refused.",
    )
    service_account_name: Name | None = Field(
        default=None, description="The servers' service account. Default: one for each server."
    )


class NodeAutoscaling(ApiModel):
    """How node autoscalers learn which nodes the pool lacks."""

    max_placeholders: Int = Field(
        default=16,
        ge=0,
        le=256,
        description="The most placeholders: Pods that run nothing and ask for the GPUs of replicas without a place, so "
        "that Karpenter or the Cluster Autoscaler adds nodes. 0: none. Default: 16.",
    )


class Prometheus(ApiModel):
    """A Prometheus server, or one with its API."""

    url: Annotated[str, StringConstraints(pattern=WEB, max_length=2048)] = Field(
        description="Its URL, such as http://prometheus.monitoring:9090."
    )
    secret_name: Name | None = Field(
        default=None,
        description="A Secret with its credentials: token, or username and password. Default: none.",
    )


class Monitoring(ApiModel):
    """The source of measurements."""

    prometheus: Prometheus | None = Field(
        default=None,
        description="Prometheus, for autoscaling and the analysis of rollouts. Default: metrics are read from the "
        "servers.",
    )


def _leaves_memory(spec: "ServingPoolSpec") -> Iterator[Fault]:
    if spec.memory_headroom == THOUSANDTHS:
        yield Fault("is all of each GPU's memory, so that nothing would have a place; lower it", ("memoryHeadroom",))


def _api_keys_are_required(spec: "ServingPoolSpec") -> Iterator[Fault]:
    runtime = spec.runtime
    on_nvidias_server = runtime.name is RuntimeName.TRITON
    yield from api_key_faults(spec.openai.api_keys, on_nvidias_server=on_nvidias_server, arguments=runtime.args)


class ServingPoolSpec(ApiModel):
    """The desired state of a pool."""

    runtime: Runtime = Field(default_factory=Runtime, description="The inference server. Default: argosy.")
    openai: OpenAi = Field(default_factory=OpenAi, description="OpenAI's API of the servers. Default: open.")
    node_selector: dict[str, str] = Field(
        default_factory=dict, max_length=64, description="Labels that a node must have. Default: any node."
    )
    tolerations: tuple[Toleration, ...] = Field(
        default=(), max_length=64, description="Taints to tolerate. Default: none."
    )
    max_gpus_per_server: Int | None = Field(
        default=None,
        ge=0,
        le=64,
        description="The most GPUs that a server may have; 0 for CPU servers. Default: as many as its models need.",
    )
    replicas: Int | None = Field(
        default=None,
        ge=0,
        le=10000,
        description="The number of servers, which /scale reads and writes. Default: as many as its models need, from "
        "minServers to maxServers.",
    )
    min_servers: Int = Field(default=0, ge=0, le=10000, description="The minimum number of servers. Default: 0.")
    max_servers: Int | None = Field(
        default=None, ge=1, le=10000, description="The maximum number of servers. Default: as many as fit on the nodes."
    )
    memory_headroom: Share = Field(
        default=200,
        description='The share of each GPU\'s memory that is kept free, as "20%". Default: "20%".',
        json_schema_extra={"default": "20%"},
    )
    rate_limit: RateLimit | None = Field(
        default=None,
        description="Makes instances wait for the resources that their models request. Default: no rate limiter.",
    )
    cache: ResponseCache | None = Field(default=None, description="The response cache of each server. Default: none.")
    tracing: Tracing | None = Field(
        default=None, description="Traces of requests, sent to an OpenTelemetry receiver. Default: none."
    )
    storage: Storage = Field(
        default_factory=Storage, description="Caches of models and engines, and the credentials of storage."
    )
    builds: Builds = Field(default_factory=Builds, description="Credentials and images of engine builds.")
    packing: Packing = Field(default_factory=Packing, description="How models are placed on servers.")
    node_autoscaling: NodeAutoscaling = Field(
        default_factory=NodeAutoscaling, description="How node autoscalers learn which nodes the pool lacks."
    )
    monitoring: Monitoring = Field(default_factory=Monitoring, description="The source of measurements.")
    analysis_templates: tuple[AnalysisTemplate, ...] = Field(
        default=(),
        max_length=32,
        description="Named queries of Prometheus for the rollouts of the pool's models and ensembles. Default: none.",
        json_schema_extra=BY_NAME,
    )
    max_disruption: Share = Field(
        default=250,
        description="The share of servers, at least one, that may be given up at once because their Nodes are gone "
        "although they answer and serve what no other server does. If there are more, all of them stay, and "
        'the pool is Stalled. Default: "25%".',
        json_schema_extra={"default": "25%"},
    )
    suspend: Flag = Field(
        default=False, description="Whether all servers are stopped and their GPUs freed. Default: false."
    )
    revision_history_limit: RevisionHistoryLimit = 10

    rules: ClassVar[tuple[Rule, ...]] = (
        replicas_in_order("min_servers", "max_servers"),
        Rule(
            ("memory_headroom",),
            _leaves_memory,
            cel="!self.memoryHeadroom.startsWith('100')",
            says="memoryHeadroom is less than 100%",
        ),
        Rule(("runtime", "openai"), _api_keys_are_required),
        Rule(("runtime", "tracing"), lambda spec: tracing_faults(spec.tracing, spec.runtime.args)),
        Rule(("analysis_templates",), lambda spec: named_once(spec.analysis_templates, "analysisTemplates")),
    )

    @property
    def build_secret(self) -> str | None:
        """The Secret with the credentials of builds."""
        return self.builds.secret_name or self.storage.secret_name

    def allows_build_in(self, image: str) -> bool:
        """Return whether engines may be built in an image other than the release's."""
        return image == self.runtime.image or self.builds.allows(image)

    @property
    def fewest_servers(self) -> int:
        """`replicas` if it is set, else `minServers`."""
        return fewest_of(self.replicas, self.min_servers)

    @property
    def most_servers(self) -> int | None:
        """`replicas` if it is set, else `maxServers`; None without a limit."""
        return self.max_servers if self.replicas is None else self.replicas


class ServingPool(ApiResource):
    """A set of servers on nodes, on which models are packed."""

    api_version: Literal["argosy.dev/v1alpha1"] = Field(
        default="argosy.dev/v1alpha1", description="The API's group and version."
    )
    kind: Literal["ServingPool"] = Field(default="ServingPool", description="ServingPool.")
    spec: ServingPoolSpec = Field(
        default_factory=ServingPoolSpec, description="The desired state. The operator never writes it."
    )
    status: ServingPoolStatus | None = Field(default=None, description="The observed state, written by the operator.")

    @cached_property
    def key(self) -> PoolKey:
        """The key of the pool, by which members, servers and objects refer to it."""
        return PoolKey.of(self.namespace, self.name)

"""The model that is profiled, alone and with the settings of one step of the sweep."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from argosy.api import Ensemble, InferenceModel, Resource, ServingPool
from argosy.api.documents import parse_body
from argosy.api.model.modelformat import LANGUAGE_BACKENDS
from argosy.bench.load.inference import no_such_input

BATCHES: Final = 64
"""The largest batch of a sweep where the model declares none and one is asked for by no option."""
_LEFT_OUT: Final = (
    *("batching", "instances", "instanceGroups", "rateLimiter", "maxBatchSize", "scaling", "slo", "rollout", "traffic"),
    *("replicas", "minReplicas", "maxReplicas", "priority", "versionPolicy", "adapters"),
)
"""Fields that the sweep decides, or that say how a fleet serves the model."""


class Profiled:
    """A model of some manifests, with its pool."""

    def __init__(self, model: InferenceModel, pool: ServingPool) -> None:
        self.model, self.pool = model, pool

    @property
    def takes_batches(self) -> bool:
        """Whether a request may have several rows, as far as the manifest says."""
        return self.model.spec.max_batch_size != 0

    def body(self, instances: int, max_batch: int) -> dict[str, Any]:
        """Return the body of the model with so many instances and rows of a batch, 0 for a model without batches.

        Batches are executed as they are sent: there is no delay and no preference.
        """
        body = _body(self.model)
        spec = {name: value for name, value in body["spec"].items() if name not in _LEFT_OUT}
        body["spec"] = {**spec, "instances": instances, "maxBatchSize": max_batch}
        return body

    def bodies(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the bodies of the model and of its pool, as they are declared."""
        return _body(self.model), _body(self.pool)

    def pool_body(self) -> dict[str, Any]:
        """Return the body of its pool, which has a server even without models."""
        body = _body(self.pool)
        body["spec"] = {**body["spec"], "minServers": 1}
        return body


def find(name: str, resources: Sequence[Resource]) -> Profiled | str:
    """Return the model of this name with its pool, or why it cannot be profiled."""
    named = [one for one in resources if one.name == name and not isinstance(one, ServingPool)]
    if not named:
        models = ", ".join(sorted(one.name for one in resources if isinstance(one, InferenceModel)))
        return f"MODEL: there is no model {name!r} in the manifests; there are {models or 'none'}"
    if len(named) > 1:
        return f"MODEL: there are several named {name}, in different namespaces; name the file of one by -f"
    (model,) = named
    if isinstance(model, Ensemble):
        return f"MODEL: {name} is an ensemble, which executes no batches itself; profile its models"
    assert isinstance(model, InferenceModel)
    pools = [one for one in resources if isinstance(one, ServingPool) and one.key == model.pool_key]
    reason = next(_reasons(model), "")
    return reason or Profiled(model, pools[0] if pools else _pool(model))


def _reasons(model: InferenceModel) -> Iterator[str]:
    spec = model.spec
    if spec.backend in LANGUAGE_BACKENDS:
        yield f"MODEL: {model.name} generates text, token by token; measure it by argosy bench"
    if spec.variants:
        yield f"MODEL: {model.name} has variants; profile a manifest of one of them"
    if spec.instance_groups:
        yield f"MODEL: {model.name} has instanceGroups, which the sweep replaces; profile a manifest with instances"
    if spec.sequence is not None:
        yield f"MODEL: {model.name} is stateful: its batches are made of sequences, and cannot be sent alone"


def shape_errors(model: InferenceModel, shapes: Sequence[str]) -> list[str]:
    """Return the errors of `shapes`: those of no declared input, and declared inputs whose sizes vary without one.

    Where a manifest declares no inputs, the server that has loaded the model knows them.
    """
    names = [tensor.name for tensor in model.spec.inputs]
    unknown = [no_such_input(name, names) for name in shapes if names and name not in names]
    return unknown + [
        f"--shape: input {tensor.name} has sizes that vary, {list(tensor.dims)}; give those of a row, such as --shape "
        f"{tensor.name}={','.join('128' if size < 0 else str(size) for size in tensor.dims)}"
        for tensor in model.spec.inputs
        if any(size < 0 for size in tensor.dims) and tensor.name not in shapes
    ]


def _pool(model: InferenceModel) -> ServingPool:
    namespace, _, name = model.pool_key.partition("/")
    body = {
        "apiVersion": model.api_version,
        "kind": "ServingPool",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {},
    }
    pool, problems = parse_body(body)
    assert isinstance(pool, ServingPool), problems
    return pool


def _body(resource: Resource) -> dict[str, Any]:
    body = resource.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"status"})
    return {"apiVersion": resource.api_version, "kind": resource.kind, **body}

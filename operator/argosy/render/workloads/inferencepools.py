"""InferencePools of the Gateway API inference extension: what an inference gateway routes to, one for each language
model.

The gateway asks an endpoint picker, which reads the gauges of every server (docs/metrics.md), which server answers a
request. Argosy declares who may be asked; picker, Gateway and HTTPRoute are the cluster's.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.api.model.modelformat import LANGUAGE_BACKENDS
from argosy.api.servingpool import RuntimeName, ServingPool
from argosy.render.names import picker_name, service_name
from argosy.render.workloads.metadata import member_labels, owned, pods_that_serve
from argosy.render.workloads.services import HTTP_PORT

API_VERSION: Final = "inference.networking.k8s.io/v1"
PICKER_PORT: Final = 9002
"""Where an endpoint picker answers gateways, by the extension's own charts and examples."""


def inference_pools(pool: ServingPool, members: Iterable[InferenceModel | Ensemble]) -> Iterator[dict[str, Any]]:
    """Yield the InferencePools of a pool's language models; none of NVIDIA's server, as it has no OpenAI API."""
    if pool.spec.runtime.name is not RuntimeName.ARGOSY:
        return
    for member in members:
        if isinstance(member, InferenceModel) and member.spec.backend in LANGUAGE_BACKENDS:
            yield _inference_pool(pool, member)


def _inference_pool(pool: ServingPool, model: InferenceModel) -> dict[str, Any]:
    """Return the InferencePool of the Pods where the model is loaded. Without a picker, a gateway picks by itself."""
    declared = owned(API_VERSION, "InferencePool", service_name(model.name), model, member_labels(pool, model))
    spec = {
        "selector": {"matchLabels": pods_that_serve(model)},
        "targetPorts": [{"number": HTTP_PORT}],
        "endpointPickerRef": {
            "kind": "Service",
            "name": picker_name(model.name),
            "port": {"number": PICKER_PORT},
            "failureMode": "FailOpen",
        },
    }
    return {**declared, "spec": spec}

"""What no engine can be built of, said before anything is tried: parallelism that contradicts a known shape."""

from collections.abc import Iterable, Iterator, Mapping

from argosy.api import InferenceModel, Problem, Resource
from argosy.planning.topology.deployment import Deployment
from argosy.planning.topology.rules import advice
from argosy_agent.contract.builds import ModelShape


def refusals(
    resources: Iterable[Resource], shapes: Mapping[str, ModelShape], sources: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield a problem for each refusal. `shapes` and `sources`, the resources' files, are by identity."""
    for model in resources:
        if isinstance(model, InferenceModel) and (shape := shapes.get(model.identity)) is not None:
            for finding in advice(Deployment.of(model, shape)):
                if finding.refuses:
                    yield Problem(sources.get(model.identity, ""), model.identity, "spec", finding.message)

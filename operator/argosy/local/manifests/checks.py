"""Manifests together: what is wrong between resources that are right by themselves."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from argosy.api.values.identity import Identity
from argosy.local.manifests.reading import Manifests, with_engine_store
from argosy.planning.topology.refusals import refusals
from argosy.render.config.configrules import check_together
from argosy_agent.contract.builds import ModelShape


def checked(manifests: Manifests, shapes: Mapping[str, ModelShape], engines: Path | None = None) -> Manifests:
    """Return the manifests with these problems too, each with its file. `shapes` are of the models' files, by identity.

    Pools that say nowhere to keep engines keep them in the folder `engines`, where there is one. To refer to a resource
    that is wrong by itself is no further problem; where a document says no name, nothing is known of what is there.
    """
    if not all(problem.names_resource for problem in manifests.problems):
        return manifests
    wrong = {problem.resource for problem in manifests.problems}
    right = [each for each in manifests.resources if each.identity not in wrong]
    stored = with_engine_store(right, engines) if engines is not None else right
    between = check_together(stored, manifests.sources, [Identity(each) for each in wrong])
    contradictions = refusals(right, shapes, manifests.sources)
    return replace(manifests, problems=(*manifests.problems, *between, *contradictions))

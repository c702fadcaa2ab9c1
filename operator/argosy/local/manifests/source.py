"""The manifests that `argosy up` serves: read again after each edit, with the last valid revision of invalid ones."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from watchfiles import Change, awatch

from argosy.api.documents import Resource
from argosy.api.problems import Problem
from argosy.local.manifests.checks import local_shapes
from argosy.local.manifests.reading import SUFFIXES, Manifests, read_manifests
from argosy.local.manifests.this_machine import for_this_machine, with_engine_store, without_effect
from argosy.planning.topology.rules import refusals
from argosy.planning.validation.accept import accept
from argosy.planning.validation.graph import Invalid
from argosy.render.config.configrules import check_together
from argosy.status.advice import advice_on_changes
from argosy.status.findings.unsupported import settings_without_effect
from argosy_agent.contract.builds import ModelShape


@dataclass(frozen=True, slots=True)
class ActiveManifests:
    """The resources that are acted upon, each once, with their files by identity.

    A resource with a problem is listed in its last valid revision; without one it is in `faulty`.
    """

    resources: tuple[Resource, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    faulty: tuple[Resource, ...] = ()


def activate(manifests: Manifests, before: ActiveManifests) -> ActiveManifests:
    """Return what is acted upon after an edit.

    A file with a problem of a resource that it did not declare before, or that cannot be parsed, removes nothing: a
    mistake in a name or kind hides the resource that is meant. What it declared before stays, unless it is declared.
    """
    invalid = {problem.resource for problem in manifests.problems}
    hiding = {problem.file for problem in manifests.problems if before.sources.get(problem.resource) != problem.file}
    hiding |= manifests.repeating
    declared = {resource.identity: resource for resource in manifests.resources if resource.identity not in invalid}
    former = {
        resource.identity: resource
        for resource in before.resources
        if resource.identity not in declared
        and (resource.identity in invalid or before.sources.get(resource.identity) in hiding)
    }
    active = declared | former
    files = {**before.sources, **manifests.sources}
    faulty = {resource.identity: resource for resource in manifests.resources if resource.identity not in active}
    return ActiveManifests(
        resources=tuple(active.values()),
        sources={identity: files[identity] for identity in active if identity in files},
        problems=manifests.problems,
        faulty=tuple(faulty.values()),
    )


class ManifestSource:
    """A file or folder of manifests as this machine serves it. `engines` is the store of pools without a cache."""

    def __init__(self, path: Path, gpus: int, engines: Path) -> None:
        self._path, self._gpus, self._engines = path.resolve(), gpus, engines
        self.active = ActiveManifests()
        self.problems: tuple[Problem, ...] = ()
        self.without_effect: list[str] = []
        self.advice: list[str] = []
        self.shapes: Mapping[str, ModelShape] = {}

    def read(self) -> None:
        """Read the manifests, and note problems, settings without effect and advice. What raises changes nothing."""
        manifests = read_manifests(self._path)
        shapes = local_shapes(manifests.resources)
        contradictions = refusals(manifests.resources, shapes, manifests.sources)
        manifests = replace(manifests, problems=(*manifests.problems, *contradictions))
        active = activate(manifests, self.active)
        between = check_together(
            with_engine_store(active.resources, self._engines),
            active.sources,
            Invalid({problem.resource for problem in active.problems}, is_error=True),
        )
        former = {resource.identity: resource for resource in self.active.resources}
        self.advice = advice_on_changes(active.resources, former)
        here = for_this_machine(active.resources, self._gpus, self._engines)
        self.without_effect = [*without_effect(active.resources, self._gpus), *settings_without_effect(here)]
        self.active, self.shapes, self.problems = active, shapes, (*active.problems, *between)

    @property
    def has_valid_resources(self) -> bool:
        """Whether there is a resource to serve, apart from the invalid ones."""
        return bool(accept(self.active.resources, self.active.problems, {}, check_together).valid)

    async def edits(self) -> AsyncIterator[None]:
        """Yield after each edit of a manifest. Files in hidden folders, as the state folder's, do not count."""
        is_folder = self._path.is_dir()
        root = self._path if is_folder else self._path.parent

        def concerns(change: Change, path: str) -> bool:
            inside = Path(path).relative_to(root)
            return path.endswith(SUFFIXES) and not any(part.startswith(".") for part in inside.parts[:-1])

        async for _ in awatch(root, watch_filter=concerns, recursive=is_folder, step=100):
            yield

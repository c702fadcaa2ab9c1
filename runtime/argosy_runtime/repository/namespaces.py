"""Names of models. With `--model-namespacing` each repository is a namespace, and models of several may share a name.

A model's identifier is its name, or in a namespace `<repository>::<name>`. A client's name means the only loaded model
that has it. The name of a step means the model of the ensemble's own namespace, or else the only loaded one.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from argosy_runtime.errors import invalid, not_found
from argosy_runtime.execution.shadow.comparing import ComparisonWork

from .folders.layout import ModelFolder, identifier_of
from .records import ModelRecord


class NamedModels:
    """Every model that was ever loaded: `records` by identifier, `by_name` those that a client's name may mean."""

    def __init__(self, namespaces: bool, comparisons: ComparisonWork) -> None:
        self.records: dict[str, ModelRecord] = {}
        self.by_name: dict[str, ModelRecord] = {} if namespaces else self.records
        self._namespaces = namespaces
        self._comparisons = comparisons

    def add(self, folder: ModelFolder) -> ModelRecord:
        """Return the record of a folder's model, a new one where it was never loaded."""
        record = self.records.get(folder.identifier)
        if record is None:
            record = ModelRecord(folder.name, namespace=folder.namespace, comparisons=self._comparisons)
            self.records[folder.identifier] = record
        record.source, record.orphaned = folder.path, False
        return record

    def desire(self, record: ModelRecord, desired: bool) -> None:
        """Note that a model is to be loaded, or to leave."""
        record.desired = desired
        self._choose(record.name)

    def forget(self, repository: Path) -> None:
        """Let the models of a repository that is no longer registered leave, once they were unloaded."""
        for record in list(self.records.values()):
            if record.source is not None and record.source.is_relative_to(repository):
                record.orphaned = True
            if record.orphaned and record.has_left:
                del self.records[record.identifier]
                self._choose(record.name)

    def of_name(self, name: str) -> list[ModelRecord]:
        """Return the models of a name, in whatever namespace."""
        if self._namespaces:
            return [record for record in self.records.values() if record.name == name]
        record = self.records.get(name)
        return [] if record is None else [record]

    def _choose(self, name: str) -> None:
        if self._namespaces:
            candidates = self._meant(name)
            if len(candidates) == 1:
                self.by_name[name] = candidates[0]
            else:
                self.by_name.pop(name, None)

    def _meant(self, name: str) -> list[ModelRecord]:
        """Return the loaded models of a name; where none is loaded, all of them."""
        every = self.of_name(name)
        return [record for record in every if record.desired] or every

    def vanished(self, name: str, folders: Iterable[ModelFolder]) -> list[ModelRecord]:
        """Return the loaded models of a name whose namespaces have a folder of it no more; `folders` are all there are.

        Without namespaces the model of a folder that is gone serves on.
        """
        there = {folder.namespace for folder in folders}
        return [r for r in self.of_name(name) if r.desired and r.namespace and r.namespace not in there]

    def identifier(self, name: str) -> str:
        """Return the identifier of the model that a client's name means. Raises ServingError, in Triton's words."""
        if not self._namespaces:
            return name
        meant = self._meant(name)
        if not meant:
            raise invalid(f"Request for unknown model: '{name}' is not found")
        if not any(record.desired for record in meant):
            raise not_found(f"Identifier of model '{name}' is not found in global map")
        if len(meant) > 1:
            raise invalid(
                f"There are {len(meant)} identifiers of model '{name}' in global map, model namespace must be provided "
                "to resolve ambiguity."
            )
        return meant[0].identifier

    def means_one(self, name: str) -> bool:
        """Return whether a client's name means one loaded model, as far as namespaces decide it."""
        record = self.by_name.get(name)
        return not self._namespaces or (record is not None and record.desired)

    def seen_from(self, namespace: str) -> Mapping[str, ModelRecord]:
        """Return the models by what the names of steps mean in a namespace."""
        return _Seen(self, namespace) if self._namespaces else self.records

    def meant_by_step(self, namespace: str, name: str) -> ModelRecord | None:
        """Return the model that the name of a step means in a namespace; None where none is loaded, or several are."""
        own = self.records.get(identifier_of(namespace, name))
        if own is not None and own.desired:
            return own
        meant = self._meant(name)
        return meant[0] if len(meant) == 1 else own

    def steps_of(self, record: ModelRecord) -> frozenset[str]:
        """Return the identifiers of the models that an ensemble runs."""
        seen = self.seen_from(record.namespace)
        return frozenset(seen[step].identifier if step in seen else step for step in record.steps)

    def may_run(self, record: ModelRecord) -> frozenset[str]:
        """Return the identifiers of the models that the names of an ensemble's steps may mean."""
        if not self._namespaces:
            return record.steps
        return frozenset(model.identifier for step in record.steps for model in self.of_name(step))


class _Seen(Mapping[str, ModelRecord]):
    """The models by what the names of steps mean in a namespace."""

    def __init__(self, models: NamedModels, namespace: str) -> None:
        self._models = models
        self._namespace = namespace

    def __getitem__(self, name: str) -> ModelRecord:
        record = self._models.meant_by_step(self._namespace, name)
        if record is None:
            raise KeyError(name)
        return record

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(record.name for record in self._models.records.values()))

    def __len__(self) -> int:
        return len(list(iter(self)))

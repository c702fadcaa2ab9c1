"""Which engines a pool's models are served by: those of a server are for the GPUs, or the CPU, of its node."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from argosy.planning.facts import Node, Waiting


@dataclass(frozen=True, slots=True)
class EngineFiles:
    """Where an engine's files are: a folder, and the digest that they are checked against."""

    uri: str
    digest: str = ""


@dataclass(frozen=True, slots=True)
class ServedEngines:
    """Of one pool's models with engines: those that there are, by model, architecture and version.

    A model among `files` is served by engines alone, on the architectures that it has there. `waiting` are those that
    no server is to have yet. `nodes` are all nodes, by name.
    """

    files: Mapping[str, Mapping[str, Mapping[int, EngineFiles]]] = field(default_factory=dict)
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    nodes: Mapping[str, Node] = field(default_factory=dict)

    def architectures(self, model: str) -> frozenset[str] | None:
        """Return what the model may be placed on; None where it needs no engine."""
        return frozenset(self.files[model]) if model in self.files else None

    def on(self, model: str, node: str, on_gpu: bool) -> Mapping[int, EngineFiles] | None:
        """Return the engines, by version, that a server on the node loads; None where the model's own files serve."""
        if model not in self.files:
            return None
        host = self.nodes.get(node)
        return self.files[model].get(host.architecture(on_gpu), {}) if host is not None else {}

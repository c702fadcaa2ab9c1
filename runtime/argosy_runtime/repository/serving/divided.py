"""A model of an ensemble's step that names no version, where the model's versions share the requests."""

from collections.abc import Callable, Mapping

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.messages import InferRequest

from .version import Destination, ServedVersion

Choose = Callable[[InferRequest], Destination | None]


class DividedModel:
    """The versions that a step's requests are divided among: those that fit the ensemble, with `main` among them.

    The ensemble is compiled for `main`, which is alike in all that matters to it. `choose` returns the destination of a
    request, None where no version takes it.
    """

    def __init__(self, main: ServedVersion, versions: Mapping[int, ServedVersion], choose: Choose) -> None:
        self.main = main
        self.versions = tuple(versions.values())
        self._choose = choose

    @property
    def config(self) -> ModelConfig:
        """Configuration of the version that the ensemble is compiled for."""
        return self.main.config

    @property
    def ready(self) -> bool:
        """True if any of its versions can answer."""
        return any(version.ready for version in self.versions)

    @property
    def takes_batches(self) -> bool:
        """True if any of its versions can take requests now."""
        return any(version.ready and version.takes_batches for version in self.versions)

    @property
    def asleep(self) -> bool:
        """True if a request must wake all of its versions."""
        return all(version.asleep for version in self.versions)

    @property
    def problem(self) -> str:
        """Reason why none of its versions can answer, "" if one can."""
        return "" if self.ready else self.main.problem

    @property
    def caution(self) -> str:
        """Reason why the version with the highest weight may not be able to answer for long."""
        return self.main.caution

    def destination(self, request: InferRequest) -> Destination:
        """Return what a request of an ensemble is sent to, for all steps of this model."""
        return self._choose(request) or self.main

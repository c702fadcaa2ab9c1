"""The choice of the environment that a model's process starts in."""

from argosy_runtime.backends import brings_environment, engine_package
from argosy_runtime.backends.contract import InstanceSpec

from . import requirements
from .engines import engine_environment
from .execution_env import environment_of as own_environment
from .process import ProcessEnvironment, of_the_server


def is_certain(spec: InstanceSpec) -> bool:
    """Return whether a model's process starts in the server's environment, whatever the files are."""
    config = spec.config
    if engine_package(config.backend) or brings_environment(config):
        return False
    return spec.requirements is None or config.backend != "python"


def environment_of(spec: InstanceSpec) -> ProcessEnvironment:
    """Return the environment that a model's process starts in; release it when the process has ended.

    It reads files and may unpack an archive, install packages or run an interpreter: never call it on the event loop.

    Raises ServingError where there is none that the model can run in.
    """
    config = spec.config
    if brings_environment(config):
        brought = own_environment(config, spec.model_dir)
        if brought is not None:
            return brought.process()
    if config.backend == "python" and spec.requirements is not None and requirements.required(spec.version_dir):
        return requirements.environment_of(config.name, spec.version_dir, spec.requirements)
    package = engine_package(config.backend)
    if package:
        return engine_environment(config.name, config.backend, package, spec.environment)
    return of_the_server()

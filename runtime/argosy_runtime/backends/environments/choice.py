"""The choice of the environment that a model's process starts in."""

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends import brings_environment, engine_package
from argosy_runtime.backends.contract import InstanceSpec

from .engines import engine_environment
from .execution_env import environment_of as own_environment
from .process import ProcessEnvironment, of_the_server


def is_certain(config: ModelConfig) -> bool:
    """Return whether a model's process starts in the server's environment, whatever the files are."""
    return not (engine_package(config.backend) or brings_environment(config))


def environment_of(spec: InstanceSpec) -> ProcessEnvironment:
    """Return the environment that a model's process starts in; release it when the process has ended.

    It reads files and may unpack an archive or run an interpreter: never call it on the event loop.

    Raises ServingError where there is none that the model can run in.
    """
    config = spec.config
    if brings_environment(config):
        brought = own_environment(config, spec.model_dir)
        if brought is not None:
            return brought.process()
    package = engine_package(config.backend)
    if package:
        return engine_environment(config.name, config.backend, package, spec.environment)
    return of_the_server()

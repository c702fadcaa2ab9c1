"""The Python backend: runs a version's `model.py` through Triton's `triton_python_backend_utils`.

What may live here: that module and the classes behind it (`pb_utils`), importing a model's code, and the instance that
calls it. Config parameters: `EXECUTION_ENV_PATH` (a folder or conda-pack archive, in which the model's process starts:
its packages come before the server's), `ISOLATION` (process or thread). Tensors stay in host memory, so
`FORCE_CPU_ONLY_INPUT_TENSORS` always holds. A model in a process of its own may import modules of its folder by name;
in a thread it uses relative imports, because all models share `sys.path` there.
"""

import os
import site
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tritonclient.grpc.model_config_pb2 import ModelConfig as ModelConfigProto

from argosy_runtime.backends import isolation
from argosy_runtime.backends.contract import Host, InstanceSpec, Isolation
from argosy_runtime.backends.environments.execution_env import environment_of
from argosy_runtime.backends.environments.process import PATHS
from argosy_runtime.errors import ServingError, internal, invalid, not_found
from argosy_runtime.modelconfig import ConfigError

from . import configuration, loader
from .instance import PythonInstance
from .pb_utils import ModelConfig, context
from .pb_utils.errors import describe

_REQUIREMENTS = "requirements.txt"
_completing = threading.Lock()  # completing changes sys.path for a while, which all of the process shares


def complete_config(model_dir: Path, version_dir: Path, config: ModelConfigProto) -> ModelConfigProto:
    """Return a copy of `config` after the model's own `auto_complete_config`, where it has one.

    Raises ServingError: NOT_FOUND without a model file, or where the completed configuration cannot be read; INTERNAL
    for an exception of the model's code.
    """
    loader.check_name(config.name)
    path = loader.model_file(config, version_dir)
    running = context.ModelContext(context.NoHost(), version_dir)
    with (
        _folders(config, model_dir, version_dir) as folders,
        _completing,
        loader.borrowed_path(folders),
        context.entered(running),
    ):
        try:
            return _completed(config, path)
        except ServingError:
            raise
        except Exception as error:
            raise internal(describe(error)) from error


def load(spec: InstanceSpec, host: Host) -> PythonInstance:
    """Import and initialize the model.

    Raises ServingError, with the model's own message and frames where its code fails.
    """
    loader.check_name(spec.name)
    path = loader.model_file(spec.config, spec.version_dir)
    alone = isolation(spec.config) is Isolation.PROCESS
    if not alone and spec.requirements is not None and (spec.version_dir / _REQUIREMENTS).is_file():
        raise invalid(f"model '{spec.config.name}' has a {_REQUIREMENTS}, which needs ISOLATION process, not thread")
    with _folders(spec.config, spec.model_dir, spec.version_dir) as folders:
        if alone:
            # An unpacked folder stays: the server locks it as long as this process lives.
            for brought in folders[2:]:
                site.addsitedir(str(brought))
            loader.extend_path(folders)
    running = context.ModelContext(host, spec.version_dir, alone=alone, instance=spec.name)
    try:
        with context.entered(running):
            loaded = loader.LoadedModel(spec.name, path)
            if alone:
                loaded.offer_to_children()
        running.package = loaded.package
        return PythonInstance(spec, running, loaded)
    except ServingError:
        raise
    except Exception as error:
        raise internal(describe(error) + _advice(error, spec)) from error


def _advice(error: Exception, spec: InstanceSpec) -> str:
    """Return what may help a model that lacks a package, "" for other errors."""
    lacks = isinstance(error, ModuleNotFoundError) and PATHS not in os.environ
    if not (lacks and (spec.version_dir / _REQUIREMENTS).is_file()):
        return ""
    return f"\nIts {_REQUIREMENTS} is installed by a server with --allow-model-requirements=true."


def _completed(config: ModelConfigProto, path: Path) -> ModelConfigProto:
    loaded = loader.LoadedModel(config.name, path)
    try:
        if not hasattr(loaded.model_class, "auto_complete_config"):
            return config
        completed = loaded.model_class.auto_complete_config(ModelConfig(configuration.as_text(config)))
    finally:
        loaded.unload()
    if not isinstance(completed, ModelConfig):
        raise internal(
            f"auto_complete_config function in model '{config.name}' must return a valid pb.ModelConfig object."
        )
    try:
        return configuration.merge_completed(config, completed.as_dict())
    except ConfigError as error:
        raise not_found(f"model configuration is not provided for model '{config.name}'; {error}") from error


@contextmanager
def _folders(config: ModelConfigProto, model_dir: Path, version_dir: Path) -> Iterator[list[Path]]:
    """Yield the folders to import from, of which an unpacked one may go afterwards."""
    brought = environment_of(config, model_dir)
    try:
        yield [version_dir, model_dir, *([] if brought is None or brought.runs_here() else [brought.packages()])]
    finally:
        if brought is not None:
            brought.release()


__all__ = ["complete_config", "load"]

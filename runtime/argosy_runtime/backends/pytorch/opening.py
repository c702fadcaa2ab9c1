"""The files of a PyTorch model: which one a version has, and opening it on a device."""

import importlib.util
import itertools
import json
import sys
import threading
import weakref
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.export.passes import move_to_device_pass
from torch.utils import _pytree as pytree
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.batch_io import input_names
from argosy_runtime.backends.contract import InstanceSpec
from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.errors import ServingError, internal, invalid, unavailable

from . import naming, packages, structure

RUNTIME = "model.py"
AOTI = "torch_aoti"
COMPILE = "TORCH_COMPILE_OPTIONAL_PARAMETERS"

_jit: Any = torch.jit  # untyped
_counter = itertools.count()
_sharing = threading.Lock()
_shared: "weakref.WeakValueDictionary[tuple[str, str], OpenModel]" = weakref.WeakValueDictionary()


@dataclass(slots=True, weakref_slot=True)
class OpenModel:
    """A model that is called with its configured inputs by name."""

    device: torch.device
    call: Callable[[Mapping[str, Any]], Any]


def model_file(config: ModelConfig, version_dir: Path, instance: str) -> Path:
    """Return the file that the configuration names. Raises ServingError (UNAVAILABLE) with the candidates."""
    candidates = [version_dir / name for name in _file_names(config)]
    for path in candidates:
        if path.is_file():
            return path
    names = "' or '".join(str(path) for path in candidates)
    raise unavailable(f"unable to find '{names}' for model instance '{instance}'")


def _file_names(config: ModelConfig) -> list[str]:
    configured = config.default_model_filename
    if config.runtime == RUNTIME:
        # A default of model.pt may be what autofill set; next to a model.py that file has the weights.
        names = [configured, RUNTIME, "model.pt"] if configured.endswith(".py") else [RUNTIME, configured, "model.pt"]
        return list(dict.fromkeys(name for name in names if name))
    if configured:
        return [configured]
    return ["model.pt2"] if config.platform == AOTI else ["model.pt", "model.pt2"]


def open_model(spec: InstanceSpec, path: Path) -> OpenModel:
    """Open a file of any of the kinds. Raises ServingError that names it and the error."""
    device = device_of(spec)
    if not Parameters(spec.config).flag("ENABLE_WEIGHT_SHARING", False):
        return _opened(spec.config, path, device)
    key = (f"{path.resolve()}:{path.stat().st_mtime_ns}", str(device))
    with _sharing:
        shared = _shared.get(key)
        if shared is None:
            _shared[key] = shared = _opened(spec.config, path, device)
        return shared


def device_of(spec: InstanceSpec) -> torch.device | None:
    """Return the instance's device; None leaves the model where it was saved (KIND_MODEL)."""
    if spec.kind == "KIND_MODEL":
        return None
    if spec.kind != "KIND_GPU":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise unavailable(
            f"model instance '{spec.name}' (KIND_GPU) needs CUDA, which this PyTorch ({torch.__version__}) cannot use "
            "here; give the model an instance group of KIND_CPU"
        )
    return torch.device("cuda", spec.device_id)


def _opened(config: ModelConfig, path: Path, device: torch.device | None) -> OpenModel:
    try:
        if path.suffix == ".py":
            return _from_source(config, path, device)
        if path.suffix == ".pt2" or config.platform == AOTI or packages.is_package(path):
            return _from_archive(config, path, device)
        return _from_torchscript(config, path, device)
    except ServingError:
        raise
    except Exception as error:
        raise internal(f"failed to load '{path}' for model '{config.name}': {error}") from error


def _from_torchscript(config: ModelConfig, path: Path, device: torch.device | None) -> OpenModel:
    try:
        module = _jit.load(str(path), map_location=device)
    except RuntimeError as error:
        first = str(error).partition("\n")[0]
        raise internal(
            f"failed to load '{path}' for model '{config.name}': not a TorchScript file ({first}); save it with "
            'torch.jit.save, or with torch.export.save as .pt2, or give the class with runtime: "model.py"'
        ) from error
    module.eval()
    arguments = [argument for argument in module.forward.schema.arguments if argument.name != "self"]
    names = [argument.name for argument in arguments]
    takes_dictionary = len(arguments) == 1 and str(arguments[0].type).startswith(("Dict[str", "Dict(str"))
    call = (lambda inputs: module(dict(inputs))) if takes_dictionary else _positional(config, names, module)
    return OpenModel(_device_in(module, device), call)


def _positional(config: ModelConfig, names: Sequence[str], module: Callable[..., Any]) -> Callable[..., Any]:
    """Call by forward's argument names where all inputs have one, else by `<name>__<index>` or by order."""
    configured = input_names(config)
    if set(configured) <= set(names):
        return lambda inputs: module(**inputs)
    positions = naming.indexed(configured) or {name: position for position, name in enumerate(configured)}
    _check_complete(config.name, positions)
    order = sorted(positions, key=positions.__getitem__)
    return lambda inputs: module(*[inputs[name] for name in order if name in inputs])


def _check_complete(model: str, positions: Mapping[str, int]) -> None:
    if sorted(positions.values()) != list(range(len(positions))):
        raise invalid(
            f"model '{model}': the inputs {', '.join(positions)} must be numbered from 0 without gaps or repeats"
        )


def _from_archive(config: ModelConfig, path: Path, device: torch.device | None) -> OpenModel:
    if not zipfile.is_zipfile(path):
        raise internal(f"failed to load '{path}' for model '{config.name}': not a PT2 archive")
    return _compiled(config, path, device) if packages.is_package(path) else _exported(config, path, device)


def _compiled(config: ModelConfig, path: Path, device: torch.device | None) -> OpenModel:
    index = device.index if device is not None and device.index is not None else -1
    package = packages.loaded(path, index)
    in_spec, _ = package.loader.get_call_spec()
    spec = pytree.treespec_loads(in_spec)
    call = _structured(config, spec, structure.argument_leaves(spec, packages.input_names(package)), package)
    return OpenModel(device or torch.device("cpu"), call)


def _exported(config: ModelConfig, path: Path, device: torch.device | None) -> OpenModel:
    program = torch.export.load(str(path))
    if device is not None and device.type != "cpu":
        program = move_to_device_pass(program, device)
    names = [str(name) for name in program.graph_signature.user_inputs]
    spec = program.call_spec.in_spec
    module = program.module()
    call = _structured(config, spec, structure.argument_leaves(spec, names), module)
    return OpenModel(_device_in(module, device), call)


def _structured(
    config: ModelConfig, spec: pytree.TreeSpec, leaves: Sequence[naming.Leaf], module: Callable[..., Any]
) -> Callable[[Mapping[str, Any]], Any]:
    """Return a call of a model whose (args, kwargs) have a fixed structure."""
    configured = input_names(config)
    positions = naming.positions(config.name, "input", configured, leaves)
    if len(positions) != len(leaves):
        raise invalid(
            f"unable to load model '{config.name}', configuration expects {len(positions)} inputs, "
            f"model provides {len(leaves)}"
        )
    order = sorted(positions, key=positions.__getitem__)

    def call(inputs: Mapping[str, Any]) -> Any:
        args, kwargs = pytree.tree_unflatten([inputs[name] for name in order], spec)
        return module(*args, **kwargs)

    return call


def _from_source(config: ModelConfig, path: Path, device: torch.device | None) -> OpenModel:
    module = module_class(config, path)()
    weights = path.with_suffix(".pt")
    if weights.is_file():
        module.load_state_dict(torch.load(weights, map_location=device, weights_only=True))
    if device is not None:
        module.to(device)
    module.eval()
    parameters = Parameters(config)
    run = torch.compile(module, **_compile_options(config, parameters)) if COMPILE in parameters else module
    order = input_names(config)
    positions = naming.indexed(order)
    if positions is not None:
        order = sorted(positions, key=positions.__getitem__)
    return OpenModel(_device_in(module, device), lambda inputs: run(*[inputs[name] for name in order]))


def module_class(config: ModelConfig, path: Path) -> Callable[[], torch.nn.Module]:
    """Return the one class of module that a Python file defines. Raises ServingError (INVALID_ARG)."""
    source = _imported(path)
    classes = [
        value
        for value in vars(source).values()
        if isinstance(value, type) and issubclass(value, torch.nn.Module) and value.__module__ == source.__name__
    ]
    if len(classes) != 1:
        names = ", ".join(sorted(value.__name__ for value in classes)) or "none"
        raise invalid(
            f"model '{config.name}': '{path}' must define exactly one subclass of torch.nn.Module, found {names}; "
            "import the others from a module next to it"
        )
    return classes[0]


def _imported(path: Path) -> ModuleType:
    """Import the file as a package's module, so that it can import its neighbours relatively."""
    package = ModuleType(f"_argosy_torch_{next(_counter)}")
    package.__path__ = [str(path.parent)]
    sys.modules[package.__name__] = package
    spec = importlib.util.spec_from_file_location(f"{package.__name__}.model", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


def _compile_options(config: ModelConfig, parameters: Parameters) -> dict[str, Any]:
    text = parameters.text(COMPILE) or "{}"
    try:
        options = json.loads(text)
    except ValueError as error:
        raise invalid(f"model '{config.name}': parameter '{COMPILE}' is not JSON: {error}") from error
    if not isinstance(options, dict):
        raise invalid(f"model '{config.name}': parameter '{COMPILE}' must be a JSON object")
    if "model" in options:
        raise invalid("'model' is not an optional parameter for 'torch.compile'")
    return options


def _device_in(module: Any, device: torch.device | None) -> torch.device:
    if device is not None:
        return device
    parameters = getattr(module, "parameters", None)
    first = next(iter(parameters()), None) if parameters is not None else None
    return first.device if first is not None else torch.device("cpu")

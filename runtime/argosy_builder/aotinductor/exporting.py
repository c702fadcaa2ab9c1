"""A step in a process of its own: the model as a program whose batch may vary, in the arithmetic asked for."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.export import Dim, ExportedProgram
from torch.export.passes import move_to_device_pass
from torch.utils import _pytree as pytree
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError, Progress
from argosy_runtime.backends.pytorch import naming, opening
from argosy_runtime.backends.pytorch.tensors import TORCH_DTYPES
from argosy_runtime.errors import ServingError

PROGRAM, NAMES = "program.pt2", "names.json"
"""What the step leaves: the program, and the names of forward's arguments."""
FREE = 16
"""An example's size where any goes; further ones are one more each, so that torch takes no two for the same."""


def export(
    source: str,
    out: str,
    inputs: Sequence[tuple[str, str, Sequence[int]]],
    max_batch_size: int,
    autocast: str,
    device: str,
    strict: bool,
    progress: Progress,
) -> None:
    """Write PROGRAM and NAMES into the folder `out`.

    Raises BuildError: MODEL_INVALID, UNSUPPORTED_MODEL (what torch.export does not take; a fixed batch).
    """
    path = Path(source)
    program = from_source(path, inputs, max_batch_size, strict) if path.suffix == ".py" else loaded(path)
    _check_batch(program, max_batch_size)
    names = [str(name) for name in program.graph_signature.user_inputs]
    if autocast:
        progress(50, f"arithmetic in {autocast}")
        if device == "cuda":
            program = on_gpu(program)
        program = in_arithmetic(program, device, autocast)
    torch.export.save(program, Path(out, PROGRAM))
    Path(out, NAMES).write_text(json.dumps(names))


def loaded(path: Path) -> ExportedProgram:
    """Return the program in a file. Raises BuildError: MODEL_INVALID."""
    try:
        return torch.export.load(str(path))
    except Exception as error:
        raise BuildError(
            BuildFailure.MODEL_INVALID,
            f"spec.storageUri: {path.name} is no exported program that torch {torch.__version__} reads: "
            f"{first_line(error)}; save it again with torch.export.save",
        ) from error


def from_source(
    path: Path, inputs: Sequence[tuple[str, str, Sequence[int]]], max_batch_size: int, strict: bool
) -> ExportedProgram:
    """Return the module that a Python file defines, with the weights of the .pt of the same name, exported."""
    module = _module(path)
    ordered = _in_order(inputs)
    if not ordered:
        raise BuildError(
            BuildFailure.MODEL_INVALID, "spec.inputs: is required to export a Python file: names, types and dims"
        )
    batch = Dim("batch", min=1, max=max_batch_size) if max_batch_size > 1 else None
    examples, shapes = [], []
    for at, (_, kind, dims) in enumerate(ordered):
        size = [FREE + at + dimension if dim < 0 else dim for dimension, dim in enumerate(dims)]
        free: dict[int, Any] = {
            dimension + (max_batch_size > 0): Dim.DYNAMIC for dimension, dim in enumerate(dims) if dim < 0
        }
        if max_batch_size > 0:
            size = [min(2, max_batch_size), *size]
        examples.append(torch.zeros(size, dtype=_dtype(kind)))
        shapes.append(free | ({0: batch} if batch is not None else {}))
    return _exported(module, tuple(examples), {}, tuple(shapes), strict)


def on_gpu(program: ExportedProgram) -> ExportedProgram:
    """Return the program on the current GPU.

    The device has its index, as the tensors of a trace do: the type checks of a program compare the two.
    """
    return move_to_device_pass(program, f"cuda:{torch.cuda.current_device()}")


def in_arithmetic(program: ExportedProgram, device: str, dtype: str) -> ExportedProgram:
    """Return the same program with products and convolutions in another type; its inputs and outputs keep theirs."""
    args, kwargs, shapes = _like_its_inputs(program)
    outputs = _output_types(program)
    wrapped = _Autocast(program.module(), device, getattr(torch, dtype), outputs)
    return _exported(wrapped, args, kwargs, shapes, False)


class _Autocast(torch.nn.Module):
    def __init__(self, module: torch.nn.Module, device: str, dtype: torch.dtype, outputs: Sequence[Any]) -> None:
        super().__init__()
        self.module, self.device, self.dtype, self.outputs = module, device, dtype, outputs

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with torch.autocast(self.device, dtype=self.dtype):
            result = self.module(*args, **kwargs)
        leaves, spec = pytree.tree_flatten(result)
        outputs = [
            leaf.to(dtype) if dtype is not None else leaf for leaf, dtype in zip(leaves, self.outputs, strict=True)
        ]
        return pytree.tree_unflatten(outputs, spec)


def _exported(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], shapes: Any, strict: bool
) -> ExportedProgram:
    try:
        return torch.export.export(module, args, dict(kwargs), dynamic_shapes=shapes, strict=strict)
    except Exception as error:
        raise BuildError(
            BuildFailure.UNSUPPORTED_MODEL,
            f"torch.export does not take the model: {first_line(error)}; export it yourself with torch.export.save, "
            "or correct spec.inputs",
        ) from error


def _module(path: Path) -> torch.nn.Module:
    try:
        module = opening.module_class(ModelConfig(name="model"), path)()
        weights = path.with_suffix(".pt")
        if weights.is_file():
            module.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
        module.eval()
    except (ServingError, Exception) as error:
        raise BuildError(
            BuildFailure.MODEL_INVALID, f"spec.storageUri: {path.name} gives no module: {first_line(error)}"
        ) from error
    return module


def _in_order(inputs: Sequence[tuple[str, str, Sequence[int]]]) -> list[tuple[str, str, Sequence[int]]]:
    """Return the inputs in the order of forward's arguments: by `<name>__<index>`, else as they are declared."""
    positions = naming.indexed([name for name, _, _ in inputs])
    return sorted(inputs, key=lambda entry: positions[entry[0]]) if positions else list(inputs)


def _dtype(kind: str) -> torch.dtype:
    name = kind.removeprefix("TYPE_")
    if name not in TORCH_DTYPES:
        raise BuildError(BuildFailure.UNSUPPORTED_MODEL, f"spec.inputs: {kind} is nothing that AOTInductor compiles")
    return TORCH_DTYPES[name]


def input_tensors(program: ExportedProgram) -> list[torch.Tensor]:
    """Return what stands for forward's arguments in the program, in order: tensors without data, of sizes or
    symbols.
    """
    names = set(program.graph_signature.user_inputs)
    values = [node.meta["val"] for node in program.graph.nodes if node.op == "placeholder" and node.name in names]
    if not all(isinstance(value, torch.Tensor) for value in values):
        raise BuildError(
            BuildFailure.UNSUPPORTED_MODEL,
            "the program takes numbers in addition to tensors; export it with tensors alone",
        )
    return values


def example(value: torch.Tensor, batch: int | None = None) -> torch.Tensor:
    """Return zeros of a program input's shape and type; its first size is `batch`, if there is one."""
    sizes = [_hint(size) for size in value.shape]
    if batch is not None:
        sizes[0] = batch
    return torch.zeros(sizes, dtype=value.dtype, device=value.device)


def _hint(size: Any) -> int:
    return size if isinstance(size, int) else int(size.node.hint)


def _like_its_inputs(program: ExportedProgram) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
    """Return arguments of the program's own shapes and types, and how their sizes vary."""
    values = input_tensors(program)
    spec = program.call_spec.in_spec
    assert spec is not None
    args, kwargs = pytree.tree_unflatten([example(value) for value in values], spec)
    symbols: dict[str, Any] = {}
    dims = [{at: _dim(program, size, symbols) for at, size in _varying(value)} for value in values]
    args_dims, kwargs_dims = pytree.tree_unflatten(dims, spec)
    return args, kwargs, {"args": tuple(args_dims), "kwargs": kwargs_dims} if kwargs else (tuple(args_dims),)


def _varying(value: torch.Tensor) -> list[tuple[int, Any]]:
    return [(at, size) for at, size in enumerate(value.shape) if not isinstance(size, int)]


def _dim(program: ExportedProgram, size: Any, symbols: dict[str, Any]) -> Any:
    """Return the dimension of a symbol: the same symbol is the same dimension, in its range.

    Of an expression torch finds out by itself.
    """
    bounds = program.range_constraints.get(size.node.expr)
    if bounds is None:
        return Dim.AUTO
    name = str(size.node.expr)
    if name not in symbols:
        high = {} if int(bounds.upper) > 2**31 else {"max": int(bounds.upper)}
        symbols[name] = Dim(name, min=int(bounds.lower), **high)
    return symbols[name]


def _output_types(program: ExportedProgram) -> list[torch.dtype | None]:
    by_name = {node.name: node.meta.get("val") for node in program.graph.nodes}
    values = [by_name.get(str(name)) for name in program.graph_signature.user_outputs]
    return [value.dtype if isinstance(value, torch.Tensor) else None for value in values]


def _check_batch(program: ExportedProgram, most: int) -> None:
    """Raise BuildError where the program does not take every batch from 1 to `most`."""
    if most == 0:
        return
    for name, value in zip(program.graph_signature.user_inputs, input_tensors(program), strict=True):
        size: Any = value.shape[0] if value.ndim else None
        if isinstance(size, int) or size is None:
            if size == most == 1:
                continue
            raise _fixed(f"{name} has {'no batch' if size is None else f'the fixed batch {size}'}", most)
        bounds = program.range_constraints.get(size.node.expr)
        if bounds is not None and not (bounds.lower <= 1 and bounds.upper >= most):
            raise _fixed(f"{name} takes batches from {bounds.lower} to {bounds.upper}", most)


def _fixed(what: str, most: int) -> BuildError:
    return BuildError(
        BuildFailure.UNSUPPORTED_MODEL,
        f"spec.maxBatchSize: is {most}, and the program's {what}: export it with dynamic_shapes, "
        f'{{0: torch.export.Dim("batch", min=1, max={most})}} for each input, or change maxBatchSize',
    )


def first_line(error: BaseException) -> str:
    """Return the first words of an error, which torch follows with pages."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:400]

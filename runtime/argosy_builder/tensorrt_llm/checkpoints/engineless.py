"""The engine-less path: a checkpoint in Hugging Face's format, quantized on request, and the arguments of `LLM`."""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from argosy_agent.contract.builds import BuildFailure
from argosy_agent.contract.engine_options.tensorrt_llm import PYTORCH
from argosy_builder.contract import BuildError, BuildJob, Workspace
from argosy_builder.options import invalid
from argosy_builder.process import call
from argosy_builder.tensorrt_llm.causes import OF_CALIBRATION
from argosy_builder.tensorrt_llm.settings import Settings

from .calibration import texts, write_dataset
from .children import CONFIGURATIONS
from .files import check_weights, read_config
from .steps import CHILDREN, tool_folder

ARGUMENTS = "llm_args.yaml"
"""The arguments of `trtllm-serve --config` and `LLM`."""
QUANTIZED = "hf_quant_config.json"
"""Where modelopt writes what it did."""


def arguments(settings: Settings) -> dict[str, Any]:
    """Return the keyword arguments of `tensorrt_llm.LLM`, but the model's folder."""
    options = {name: value for name, value in settings.options.items() if name in PYTORCH}
    if settings.max_batch_size:
        options["max_batch_size"] = settings.max_batch_size
    split = {"tensor_parallel_size": settings.tensor, "pipeline_parallel_size": settings.pipeline}
    dtype = {} if settings.dtype == "auto" else {"dtype": settings.dtype}
    return dict(sorted({"backend": "pytorch", **split, **dtype, **options}.items()))


def check_format(settings: Settings) -> None:
    """Raise BuildError, INVALID_OPTIONS, where this path has no such format."""
    if settings.qformat not in ("", "full_prec", *CONFIGURATIONS):
        raise invalid("qformat", f"{settings.qformat} has no checkpoint that backend: pytorch reads; take another")


def written(job: BuildJob, settings: Settings, workspace: Workspace) -> None:
    """Write the checkpoint and its arguments. Raises BuildError."""
    if settings.qformat in CONFIGURATIONS:
        _quantized(job, settings, workspace.out)
    else:
        _copied(job, workspace.out)
    text = yaml.safe_dump(arguments(settings), sort_keys=True)
    (workspace.out / ARGUMENTS).write_text(text, encoding="utf-8")


def check_checkpoint(settings: Settings, folder: Path) -> None:
    """Raise BuildError, ENGINE_DIFFERS, where the checkpoint is not the requested one."""
    differences = []
    try:
        check_weights(folder)
        read_config(folder)
        written = yaml.safe_load((folder / ARGUMENTS).read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, BuildError) as error:
        raise BuildError(BuildFailure.ENGINE_DIFFERS, f"the checkpoint that was written is broken: {error}") from error
    if written != arguments(settings):
        differences.append(f"{ARGUMENTS} says {written}, and {arguments(settings)} was requested")
    if settings.qformat in CONFIGURATIONS:
        quantization = _quantization(folder)
        for name, requested in (("quant_algo", settings.algorithm), ("kv_cache_quant_algo", cache_of(settings))):
            has = quantization.get(name)
            if has != (requested.upper() if requested else None):
                differences.append(
                    f"{name}: requested {requested or 'nothing'}, and the checkpoint has {has or 'nothing'}"
                )
        if settings.block and quantization.get("group_size") != settings.block:
            differences.append(f"group_size: requested {settings.block}, and has {quantization.get('group_size')}")
    if differences:
        raise BuildError(
            BuildFailure.ENGINE_DIFFERS, f"the checkpoint is not what was requested: {'; '.join(differences)}"
        )


def cache_of(settings: Settings) -> str | None:
    """Return the precision of keys and values that the checkpoint has scales for; None: as the model computes."""
    configured = settings.options.get("kv_cache_config")
    dtype = configured.get("dtype", "auto") if isinstance(configured, Mapping) else "auto"
    return None if dtype == "auto" else str(dtype)


def calibration(settings: Settings) -> dict[str, Any]:
    """Return the settings of a calibration by modelopt, as `quantize_checkpoint` takes them."""
    options = settings.options
    return {
        "batch_size": options.get("calib_batch_size", 1),
        "max_length": options.get("calib_max_seq_length", 512),
        "seed": options.get("random_seed", 1234),
        "device_map": settings.device_map,
        "block_size": settings.block,
    }


def _quantized(job: BuildJob, settings: Settings, output: Path) -> None:
    prompts = texts(job)
    with tool_folder(job) as here:
        write_dataset(prompts, here.texts)
        call(
            f"{CHILDREN}:quantize_checkpoint",
            {
                "model": str(here.model),
                "output": str(output),
                "qformat": settings.qformat,
                "cache": cache_of(settings),
                "dtype": settings.dtype,
                "dataset": str(here.texts),
                "calibration": calibration(settings),
            },
            job.progress,
            causes=OF_CALIBRATION,
            environment=here.environment,
        )


def _copied(job: BuildJob, output: Path) -> None:
    """Copy the files, except code; by hard links where both are on one disk."""
    files = [path for path in sorted(job.model.iterdir()) if path.is_file() and path.suffix != ".py"]
    for at, path in enumerate(files):
        job.progress(100 * at // len(files), path.name)
        try:
            os.link(path.resolve(), output / path.name)
        except OSError:
            shutil.copyfile(path, output / path.name)


def _quantization(folder: Path) -> Mapping[str, Any]:
    try:
        quantization = json.loads((folder / QUANTIZED).read_text(encoding="utf-8"))["quantization"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BuildError(
            BuildFailure.ENGINE_DIFFERS, f"{QUANTIZED} cannot be read, so the checkpoint is not quantized: {error!r}"
        ) from error
    return quantization if isinstance(quantization, Mapping) else {}

"""The engine-less path: a checkpoint of Hugging Face's form, quantized where asked, and what `LLM` is to be told."""

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
from .steps import CHILDREN, place

ARGUMENTS = "llm_args.yaml"
"""What `trtllm-serve --config` and `LLM` are told."""
QUANTIZED = "hf_quant_config.json"
"""Where modelopt writes what it did."""


def arguments(settings: Settings) -> dict[str, Any]:
    """Return the keyword arguments of `tensorrt_llm.LLM`, but the model's folder."""
    found = {name: value for name, value in settings.options.items() if name in PYTORCH}
    if settings.max_batch_size:
        found["max_batch_size"] = settings.max_batch_size
    split = {"tensor_parallel_size": settings.tensor, "pipeline_parallel_size": settings.pipeline}
    dtype = {} if settings.dtype == "auto" else {"dtype": settings.dtype}
    return dict(sorted({"backend": "pytorch", **split, **dtype, **found}.items()))


def check_format(settings: Settings) -> None:
    """Raises BuildError: INVALID_OPTIONS where this path has no such format."""
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
    """Raises BuildError: ENGINE_DIFFERS, where the checkpoint is not what was asked."""
    differences = []
    try:
        check_weights(folder)
        read_config(folder)
        found = yaml.safe_load((folder / ARGUMENTS).read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, BuildError) as error:
        raise BuildError(BuildFailure.ENGINE_DIFFERS, f"the checkpoint that was written is broken: {error}") from error
    if found != arguments(settings):
        differences.append(f"{ARGUMENTS} says {found}, and asked is {arguments(settings)}")
    if settings.qformat in CONFIGURATIONS:
        quantization = _quantization(folder)
        for name, asked in (("quant_algo", settings.algorithm), ("kv_cache_quant_algo", cache_of(settings))):
            has = quantization.get(name)
            if has != (asked.upper() if asked else None):
                differences.append(f"{name}: asked {asked or 'nothing'}, and the checkpoint has {has or 'nothing'}")
        if settings.block and quantization.get("group_size") != settings.block:
            differences.append(f"group_size: asked {settings.block}, and has {quantization.get('group_size')}")
    if differences:
        raise BuildError(BuildFailure.ENGINE_DIFFERS, f"the checkpoint is not what was asked: {'; '.join(differences)}")


def cache_of(settings: Settings) -> str | None:
    """Return the precision of keys and values that the checkpoint has scales for; None: as the model computes."""
    configured = settings.options.get("kv_cache_config")
    said = configured.get("dtype", "auto") if isinstance(configured, Mapping) else "auto"
    return None if said == "auto" else str(said)


def _quantized(job: BuildJob, settings: Settings, output: Path) -> None:
    found, options = texts(job), settings.options
    with place(job) as here:
        write_dataset(found, here.texts)
        call(
            f"{CHILDREN}:quantize_checkpoint",
            {
                "model": str(here.model),
                "output": str(output),
                "qformat": settings.qformat,
                "cache": cache_of(settings),
                "dtype": settings.dtype,
                "dataset": str(here.texts),
                "calibration": {
                    "batch_size": options.get("calib_batch_size", 1),
                    "max_length": options.get("calib_max_seq_length", 512),
                    "seed": options.get("random_seed", 1234),
                    "device_map": options.get("device_map", "auto"),
                    "block_size": settings.block,
                },
            },
            job.progress,
            causes=OF_CALIBRATION,
            environment=here.environment,
        )


def _copied(job: BuildJob, output: Path) -> None:
    """The files as they are, but code; hard links where both are on one disk."""
    files = [path for path in sorted(job.model.iterdir()) if path.is_file() and path.suffix != ".py"]
    for at, path in enumerate(files):
        job.progress(100 * at // len(files), path.name)
        try:
            os.link(path.resolve(), output / path.name)
        except OSError:
            shutil.copyfile(path, output / path.name)


def _quantization(folder: Path) -> Mapping[str, Any]:
    try:
        found = json.loads((folder / QUANTIZED).read_text(encoding="utf-8"))["quantization"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BuildError(
            BuildFailure.ENGINE_DIFFERS, f"{QUANTIZED} cannot be read, so the checkpoint is not quantized: {error!r}"
        ) from error
    return found if isinstance(found, Mapping) else {}

"""A checkpoint in TensorRT-LLM's form: converted, or quantized with calibration, in a process of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argosy_builder.contract import BuildJob, Workspace
from argosy_builder.process import call
from argosy_builder.tensorrt_llm import progress
from argosy_builder.tensorrt_llm.causes import CAUSES, OF_CALIBRATION
from argosy_builder.tensorrt_llm.compatibility import architecture_of
from argosy_builder.tensorrt_llm.settings import Settings

from .calibration import texts, write_dataset
from .files import read_config
from .neutral import neutral_folder, shown

CHILDREN = f"{__package__}.children"


@dataclass(frozen=True, slots=True)
class ToolFolder:
    """The folders of a tool: the model under a name without meaning, one for texts; and its environment."""

    model: Path
    texts: Path
    environment: dict[str, str]


@contextmanager
def tool_folder(job: BuildJob) -> Iterator[ToolFolder]:
    """Yield the folders of one tool, which are removed in the end. Nothing in them reaches for a network."""
    with neutral_folder() as folder:
        model = shown(job.model, folder, architecture_of(read_config(job.model)))
        yield ToolFolder(model, folder / "texts", environment(folder))


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of TensorRT-LLM's processes, whose caches are below `folder`."""
    return {
        "TLLM_LOG_LEVEL": "INFO",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "HF_HOME": str(folder / "cache"),
        "HF_DATASETS_CACHE": str(folder / "cache/datasets"),
        "TOKENIZERS_PARALLELISM": "false",
    }


def converted(job: BuildJob, settings: Settings, workspace: Workspace) -> None:
    """Write the checkpoint, one file a rank. Raises BuildError."""
    if settings.is_calibrated:
        _quantized(job, settings, workspace)
        return
    with tool_folder(job) as here:
        call(
            f"{CHILDREN}:convert",
            {
                "model": str(here.model),
                "output": str(workspace.out),
                "dtype": settings.dtype,
                "algorithm": settings.algorithm,
                "mapping": mapping(settings),
                "arguments": conversion(settings),
            },
            job.progress,
            causes=CAUSES,
            environment=here.environment,
        )


def _quantized(job: BuildJob, settings: Settings, workspace: Workspace) -> None:
    prompts = texts(job)
    with tool_folder(job) as here:
        write_dataset(prompts, here.texts)
        arguments = quantization(settings, here.model, here.texts, len(prompts), workspace.out)
        report = progress.of_quantization(len(prompts), arguments["batch_size"], job.progress)
        call(
            f"{CHILDREN}:quantize",
            {"arguments": arguments},
            lambda percent, line: report(line),
            causes=OF_CALIBRATION,
            environment={**here.environment, "TLLM_LOG_LEVEL": "VERBOSE"},  # it tells its batches there alone
        )


def mapping(settings: Settings) -> dict[str, int]:
    """Return the arguments of `Mapping` but the rank."""
    experts = {name: settings.options[name] for name in ("moe_tp_size", "moe_ep_size") if name in settings.options}
    return {
        "world_size": settings.ranks,
        "tp_size": settings.tensor,
        "pp_size": settings.pipeline,
        **experts,
    }


def conversion(settings: Settings) -> dict[str, Any]:
    """Return the arguments of `from_hugging_face` that options give."""
    names = ("use_parallel_embedding", "embedding_sharding_dim", "load_model_on_cpu")
    return {name: settings.options[name] for name in names if name in settings.options}


def quantization(settings: Settings, model: Path, data: Path, samples: int, output: Path) -> dict[str, Any]:
    """Return the arguments of `quantize_and_export`, which has no defaults for most of them."""
    options = settings.options
    more = {"quantize_lm_head": True} if options.get("quantize_lm_head") else {}
    return {
        "model_dir": str(model),
        "device": "cuda",
        "calib_dataset": str(data),
        "dtype": settings.dtype,
        "qformat": settings.qformat or "full_prec",
        "kv_cache_dtype": settings.kv_cache_dtype,
        "calib_size": samples,
        "batch_size": options.get("calib_batch_size", 1),
        "calib_max_seq_length": options.get("calib_max_seq_length", 512),
        "awq_block_size": options.get("awq_block_size", 128),
        "output_dir": str(output),
        "tp_size": settings.tensor,
        "pp_size": settings.pipeline,
        "cp_size": 1,
        "seed": options.get("random_seed", 1234),
        "tokenizer_max_seq_length": options.get("tokenizer_max_seq_length", 2048),
        "device_map": settings.device_map,
        **more,
    }

"""Language models for the accuracy gate: the content of a folder, opened, answers with the logits of tokens.

Opened in the gate's own process, which has the GPUs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from argosy_agent.contract.builds import BuildFailure, BuildRequest
from argosy_builder.accuracy.language import IDS, LOGITS, MASK, token_log_likelihood
from argosy_builder.contract import Array, BuildError
from argosy_builder.tensorrt_llm.checkpoints.engineless import ARGUMENTS
from argosy_builder.tensorrt_llm.engine.steps import TOKENIZER
from argosy_builder.tensorrt_llm.settings import DTYPES, settings_of

Logits = Callable[[Sequence[int]], Array]
"""The logits [tokens, vocabulary] of tokens; each foretells the token after."""
Tokens = Callable[[str], Sequence[int]]


class LanguageModel:
    """`logits` and `tokens` are the model's and the tokenizer's; of a text `longest` tokens are read."""

    def __init__(self, logits: Logits, tokens: Tokens, longest: int) -> None:
        self._logits, self._tokens, self._longest = logits, tokens, longest

    def log_likelihood(self, text: str) -> tuple[float, int]:
        """Return the log-likelihood of a text and the number of its tokens. Raises BuildError."""
        ids = list(self._tokens(text))[: self._longest]
        if len(ids) < 2:
            return 0.0, 0
        return token_log_likelihood(self._logits(ids), np.asarray(ids))

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return the logits of `input_ids`, [tokens] or [batch, tokens]; where `attention_mask` is 0 they are 0."""
        ids = inputs[IDS]
        mask = inputs.get(MASK, np.ones_like(ids))
        if ids.ndim == 1:
            return {LOGITS: self._row(ids, mask)}
        return {LOGITS: np.stack([self._row(*row) for row in zip(ids, mask, strict=True)])}

    def _row(self, ids: Array, mask: Array) -> Array:
        real = mask.astype(bool)
        answered = self._logits([int(token) for token in ids[real]]).astype(np.float32)
        row = np.zeros((len(ids), answered.shape[-1]), np.float32)
        row[real] = answered
        return row


CACHE = 0.1
"""The share of free GPU memory for keys and values: one text at a time is read, and the baseline is there too."""
TOGETHER = 256
"""So many beginnings of a text are asked for at once."""


@contextmanager
def opened(folder: Path, request: BuildRequest) -> Iterator[LanguageModel]:
    """Yield the model of a folder: an engine, a checkpoint of the engine-less path, or the checkpoint as it came.

    All of them read texts to the same length. Raises BuildError.
    """
    try:
        if any(folder.glob("rank*.engine")):
            with _engine(folder) as llm:
                yield _of_llm(llm, folder / TOKENIZER, request)
        elif (folder / ARGUMENTS).is_file():
            with _checkpoint(folder) as llm:
                yield _of_llm(llm, folder, request)
        else:
            yield _baseline(folder, request)
    except ModuleNotFoundError as missing:
        raise BuildError(
            BuildFailure.BUILDER_MISSING,
            f"spec.engine.accuracy: comparing needs the package {missing.name!r}; set engine.image to NVIDIA's "
            "TensorRT-LLM image",
        ) from missing


def _engine(folder: Path) -> Any:
    from tensorrt_llm._tensorrt_engine import LLM
    from tensorrt_llm.llmapi import KvCacheConfig

    return LLM(
        model=str(folder),
        tokenizer=str(folder / TOKENIZER),
        kv_cache_config=KvCacheConfig(free_gpu_memory_fraction=CACHE),
        gather_generation_logits=True,
    )


def _checkpoint(folder: Path) -> Any:
    from tensorrt_llm import LLM

    arguments: dict[str, Any] = yaml.safe_load((folder / ARGUMENTS).read_text(encoding="utf-8"))
    cache = {**(arguments.pop("kv_cache_config", None) or {}), "free_gpu_memory_fraction": CACHE}
    return LLM(model=str(folder), kv_cache_config=cache, gather_generation_logits=True, **arguments)


def _of_llm(llm: Any, tokenizer: Path, request: BuildRequest) -> LanguageModel:
    from tensorrt_llm import SamplingParams

    parameters = SamplingParams(max_tokens=1, return_generation_logits=True, detokenize=False)

    def logits(ids: Sequence[int]) -> Array:
        return _by_beginnings(llm, ids, parameters)

    return LanguageModel(logits, _tokens(tokenizer), _longest(request))


def _by_beginnings(llm: Any, ids: Sequence[int], parameters: Any) -> Array:
    """Return the logits after each beginning of the tokens.

    An engine tells those of its prompt only where it was built to (`gather_context_logits`), which costs memory in
    service; those of the first token of an answer any engine tells.
    """
    beginnings = [{"prompt_token_ids": list(ids[: end + 1])} for end in range(len(ids))]
    rows = []
    for at in range(0, len(beginnings), TOGETHER):
        for answer in llm.generate(beginnings[at : at + TOGETHER], parameters, use_tqdm=False):
            logits = answer.outputs[0].generation_logits
            if logits is None:
                raise BuildError(
                    BuildFailure.BUILD_FAILED,
                    "spec.engine.accuracy: this TensorRT-LLM tells no logits; compare with another image, or skip",
                )
            rows.append(np.asarray(logits.float().cpu().numpy()).reshape(-1, logits.shape[-1])[0])
    return np.stack(rows)


def _baseline(folder: Path, request: BuildRequest) -> LanguageModel:
    import torch
    from transformers import AutoModelForCausalLM

    precision = request.gate.baseline_precision if request.gate else ""
    model = AutoModelForCausalLM.from_pretrained(
        str(folder), dtype=DTYPES.get(precision, "auto"), device_map="auto" if torch.cuda.is_available() else "cpu"
    ).eval()

    def logits(ids: Sequence[int]) -> Array:
        with torch.inference_mode():
            answer = model(input_ids=torch.tensor([list(ids)], device=model.device))
        logits: Array = answer.logits[0].float().cpu().numpy()
        return logits

    return LanguageModel(logits, _tokens(folder), _longest(request))


def _tokens(folder: Path) -> Any:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(folder))

    def tokens(text: str) -> Sequence[int]:
        encoded: Mapping[str, Any] = tokenizer(text)
        return list(encoded["input_ids"])

    return tokens


def _longest(request: BuildRequest) -> int:
    """Return the tokens of a text that both sides read: a prompt, and one more."""
    settings = settings_of(request)
    longest = int(settings.options.get("max_seq_len", settings.longest_prompt + 1))
    return max(2, min(settings.longest_prompt, longest - 1))

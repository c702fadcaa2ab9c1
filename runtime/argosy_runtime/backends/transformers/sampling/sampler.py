"""The choice of each next token in the library's continuous batching.

The token with the largest score is taken: that of greedy requests is the first of the likeliest ones, and that of the
others is a sample, since their scores have noise of their own (`processors.Noise`). The library draws for all requests
of a batch from one generator instead.

**Logits that are not finite.** A model whose weights or activations overflow has logits that are NaN or infinite, and
their argmax is an arbitrary token. Such a request ends with a marker in place of its next token: the first number that
is no token, the size of the vocabulary. Requests of the same forward pass may end with it, since attention under a
mask multiplies its NaN by zero; later ones do not.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from argosy_runtime.fifo_cache import FifoCache

from .processors import LaterEnd, Logprobs, Noise

_LATEST: Final = 4096


@dataclass(frozen=True, slots=True)
class Sampler:
    """What a manager's batch can do for a request, and how many tokens of a request's prompt the cache had, by the
    library's id for it: of the latest requests.
    """

    samples: bool
    has_logprobs: bool
    cached: FifoCache[str, int] = field(default_factory=lambda: FifoCache(_LATEST))


def install(manager: Any, vocabulary: int, ends: Collection[int], *, greedy: bool) -> Sampler:
    """Make a `ContinuousBatchingManager` choose tokens as this module says. Called before its warm-up.

    `ends` are the model's own end tokens. Each request's end ids must include the marker.
    """
    logprobs = Logprobs()
    processors = manager.logit_processor
    steps = [logprobs, LaterEnd(ends, vocabulary, manager.model.device), *processors.logits_processor]
    processors.logits_processor = type(processors.logits_processor)([*steps, *([] if greedy else [Noise()])])
    processors.tensors_required += 2 if greedy else 3
    processors.do_processing = True
    processors._retrieve_processors_kwargs()
    manager.batch_processor = batch = manager._create_batch_processor()
    one_by_one = not (batch.use_async_batching or any(batch.cb_config.cuda_graph_booleans))
    sampler = Sampler(not greedy, one_by_one)
    batch.model_runner._sample = _sample(vocabulary, logprobs if one_by_one else None)
    _keep_tokens(batch.inputs_and_outputs, vocabulary)
    _report_logprobs(batch.inputs_and_outputs, logprobs)
    _note_cached(batch.cache, sampler.cached)
    return sampler


def _sample(marker: int, logprobs: Logprobs | None) -> Callable[[torch.Tensor, torch.Tensor], None]:
    """Return the function from scores, [1, requests, vocabulary], to tokens, the first row of [rows, requests]."""

    def sample(scores: torch.Tensor, output_ids: torch.Tensor) -> None:
        best, tokens = scores[0].max(dim=-1)
        # A row's largest score is not finite where any is NaN or infinite, or where all are -inf.
        tokens = tokens.masked_fill(~best.isfinite(), marker)
        output_ids[0, : tokens.size(0)].copy_(tokens)
        if logprobs is not None:
            logprobs.sampled(tokens)

    return sample


def _keep_tokens(inputs: Any, marker: int) -> None:
    """Clamp carried-over tokens to the vocabulary.

    Batching ahead of the results puts a request's last token, marker or not, into the next batch before it ends.
    """
    carry_over = inputs.carry_over_tokens

    def carry_over_tokens(input_ids: torch.Tensor, *others: torch.Tensor) -> None:
        carry_over(input_ids, *others)
        input_ids.clamp_(max=marker - 1)

    inputs.carry_over_tokens = carry_over_tokens


def _report_logprobs(inputs: Any, logprobs: Logprobs) -> None:
    """Put what there is to tell of each token where the library has its log probability."""
    prepare = inputs.prepare_batch_update

    def prepare_batch_update() -> tuple[Any, Any, Any]:
        requests, tokens, _ = prepare()
        return requests, tokens, logprobs.of_batch(len(tokens))

    inputs.prepare_batch_update = prepare_batch_update


def _note_cached(cache: Any, cached: FifoCache[str, int]) -> None:
    search = cache.search_prefix_match

    def search_prefix_match(request_id: str, prompt_ids: list[int]) -> int:
        matched: int = search(request_id, prompt_ids)
        if cached.get(request_id) is None:  # later ones find what the request itself has computed
            cached.put(request_id, matched)
        return matched

    cache.search_prefix_match = search_prefix_match

"""Corrections of the sampling in the library's continuous batching.

**Greedy requests in a batch that samples.** The library draws each token at random once one request may sample. A
greedy request is then a choice among the top 1, and the library's top-k keeps every token that ties with it. Here
exactly one is left.

**Logits that are not finite.** A model whose weights or activations overflow has logits that are NaN or infinite. Their
softmax is NaN, at which the library's sampling ends the batch for good, and their argmax is an arbitrary token. Here
such a request ends with a marker in place of its next token: the first number that is no token, the size of the
vocabulary. Requests of the same forward pass may end with it, since attention under a mask multiplies its NaN by zero;
later ones do not.
"""

from typing import Any

import torch
from transformers.generation.continuous_batching.cb_logits_processors import ContinuousBatchingTopKLogitsWarper


class ArgmaxTopK(ContinuousBatchingTopKLogitsWarper):  # type: ignore[misc]  # the library has no types for it
    """The library's top-k for each request, where a top-k of 1 is argmax: the first of the likeliest tokens."""

    def __call__(self, scores: torch.Tensor, tensor_arg: torch.Tensor) -> torch.Tensor:
        """Return the scores, [requests, vocabulary], of the tokens that stay; the rest are the filter value."""
        top: torch.Tensor = super().__call__(scores, tensor_arg)
        is_greedy = (tensor_arg[: scores.size(0)] == 1).unsqueeze(-1)
        tokens = torch.arange(scores.size(-1), device=scores.device)
        is_first = tokens == scores.argmax(dim=-1, keepdim=True)
        return top.masked_fill(is_greedy & ~is_first, self.filter_value)


def make_top_one_argmax(manager: Any) -> None:
    """Put `ArgmaxTopK` in place of the top-k of a `ContinuousBatchingManager` that has not been warmed up."""
    processors = manager.logit_processor.logits_processor
    for index, processor in enumerate(processors):
        if isinstance(processor, ContinuousBatchingTopKLogitsWarper):
            processors[index] = ArgmaxTopK(processor)


def end_where_not_finite(manager: Any, vocabulary: int) -> None:
    """Make a `ContinuousBatchingManager` end a request whose logits are not finite with the token `vocabulary`.

    Called before its warm-up, which records what it runs. Each request's end ids must include the marker.
    """
    manager.batch_processor = batch = manager._create_batch_processor()
    _mark_samples(batch.model_runner, vocabulary)
    _keep_tokens(batch.inputs_and_outputs, vocabulary)


def _mark_samples(runner: Any, marker: int) -> None:
    sample = runner._sample

    def marked(scores: torch.Tensor, output_ids: torch.Tensor) -> None:
        # A row's largest score, of [1, requests, vocabulary], is not finite where any is NaN or all are -inf.
        not_finite = ~scores[0].amax(dim=-1).isfinite()
        sample(scores.masked_fill_(not_finite[None, :, None], 0.0), output_ids)
        output_ids[0, : not_finite.size(0)].masked_fill_(not_finite, marker)

    runner._sample = marked


def _keep_tokens(inputs: Any, marker: int) -> None:
    """Clamp carried-over tokens to the vocabulary.

    Batching ahead of the results puts a request's last token, marker or not, into the next batch before it ends.
    """
    carry_over = inputs.carry_over_tokens

    def carry_over_tokens(input_ids: torch.Tensor, *others: torch.Tensor) -> None:
        carry_over(input_ids, *others)
        input_ids.clamp_(max=marker - 1)

    inputs.carry_over_tokens = carry_over_tokens

"""Requests whose logits are not finite, in a batch with others.

A model whose weights or activations overflow has logits that are NaN or infinite. Their softmax is NaN, at which the
library's sampling ends the batch for good, and their argmax is an arbitrary token. Here such a request ends with a
marker in place of its next token: the first number that is no token, the size of the vocabulary. Requests of the same
forward pass may end with it, since attention under a mask multiplies its NaN by zero; later ones do not.
"""

from typing import Any

import torch


def end_where_not_finite(manager: Any, vocabulary: int) -> None:
    """Have a `ContinuousBatchingManager` end a request whose logits are not finite with the token `vocabulary`.

    To be called before its warm-up, which records what it runs. Each request's end ids must include the marker.
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
    """Batching ahead of the results puts a request's last token, marker or not, into the next batch before it ends."""
    carry_over = inputs.carry_over_tokens

    def carry_over_tokens(input_ids: torch.Tensor, *others: torch.Tensor) -> None:
        carry_over(input_ids, *others)
        input_ids.clamp_(max=marker - 1)

    inputs.carry_over_tokens = carry_over_tokens

"""Rules for the fit of a split to the GPUs there are: their memory, and what NVLink joins.

Each has its when, says and do.
"""

from argosy.planning.amounts import gib
from argosy.planning.topology.deployment import Deployment
from argosy.planning.topology.memory import all_reduces, cache_per_token
from argosy.planning.topology.traffic import DECODE_TENSOR, is_decode_heavy


def too_large(d: Deployment) -> bool:
    """Return whether not even one sequence fits."""
    return d.budget is not None and d.budget.sequences < 1


def says_too_large(d: Deployment) -> str:
    """Return the sum of the parts and the memory of a GPU, in words."""
    if (b := d.budget) is None:
        return ""
    return (
        f"{gib(b.weights)} of weights, {gib(b.workspace)} of workspace and {gib(b.sequence)} of cache for "
        f"one sequence of {d.split.length} tokens are {gib(b.needed)} a GPU, which has {gib(b.usable)} for "
        "models"
    )


def make_it_fit(d: Deployment) -> str:
    """Return a split that fits, or a precision, or what else there is to lower."""
    most = _joined(d)
    if tensor := d.smallest_fit(most):
        return f"take parallelism.tensor {tensor}"
    if d.split.weight_bits > 8 and (tensor := d.smallest_fit(most, 8)):
        return f"take parallelism.tensor {tensor} with weights of 8 bits"
    return "lower max_seq_len or the pool's memoryHeadroom, or add larger GPUs"


def across_nvlink(d: Deployment) -> bool:
    """Return whether GPUs that share a layer, which talk after every half of it, are not all joined by NVLink."""
    return d.machine is not None and d.split.tensor > d.machine.joined


def says_across_nvlink(d: Deployment) -> str:
    """Return how many there are and how many it takes, and what would go over PCIe."""
    size = d.shape.hidden_size * 2 / 1024
    return (
        f"parallelism.tensor {d.split.tensor} takes {d.split.tensor} GPUs that NVLink joins, and the most that are "
        f"joined on a node is {_joined(d)}: {all_reduces(d.shape)} all-reduces of {size:g} KiB for each token would go "
        "over PCIe"
    )


def stay_within_nvlink(d: Deployment) -> str:
    """Return the split that fits there, or other nodes."""
    if fits := d.smallest_fit(_joined(d)):
        return f"take tensor {fits}, which fits there"
    return f"add a node whose NVLink joins {d.split.tensor}, or lower engine.precision"


def pipelines_within_nvlink(d: Deployment) -> bool:
    """Return whether stages run one after the other, where all GPUs could share each layer."""
    gpus = d.split.gpus
    fits = d.machine is not None and gpus <= d.machine.joined and gpus in d.tensors
    return d.split.pipeline > 1 and fits and not (is_decode_heavy(d) and gpus > DECODE_TENSOR)


def says_pipeline(d: Deployment) -> str:
    """Return stages, and the GPUs that could do without."""
    return (
        f"parallelism.pipeline {d.split.pipeline}: a token passes {d.split.pipeline} stages one after the other, "
        f"though NVLink joins {_joined(d)} GPUs and this takes {d.split.gpus}"
    )


def share_layers(d: Deployment) -> str:
    """Return the advice to use as many GPUs, without stages."""
    return f"take tensor {d.split.gpus} and pipeline 1"


def few_sequences(d: Deployment) -> bool:
    """Return whether fewer requests of the mean length fit than are to run at once; cache pages are allocated as they
    grow.
    """
    return d.budget is not None and d.traffic is not None and 1 <= _mean_requests(d) < d.split.sequences


def says_few_sequences(d: Deployment) -> str:
    """Return how many fit, in what, at which size of a token."""
    tokens, left = d.traffic.tokens if d.traffic else 0, d.budget.left if d.budget else 0
    return (
        f"{_mean_requests(d)} of {d.split.sequences} requests of {tokens} tokens, the mean, fit in the {gib(left)} "
        f"that weights and workspace leave of a GPU ({cache_per_token(d.shape, d.split) / 1024:g} KiB a token); "
        "others wait"
    )


def lower_limits(d: Deployment) -> str:
    """Return what to lower."""
    halved = " a KV cache of 8 bits," if d.split.cache_bits > 8 else ""
    return f"lower max_batch_size to {_mean_requests(d)}, or take{halved} more GPUs or a lower precision"


def _mean_requests(d: Deployment) -> int:
    """Return the number of requests of the mean length whose cache fits."""
    if d.budget is None or d.traffic is None:
        return 0
    return d.budget.left // (cache_per_token(d.shape, d.split) * d.traffic.tokens)


def _joined(d: Deployment) -> int:
    return d.machine.joined if d.machine else 1

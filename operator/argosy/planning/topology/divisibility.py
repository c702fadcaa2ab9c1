"""Rules for what must divide evenly over GPUs: heads, layers and experts. Each has its when, says and do."""

from collections.abc import Iterable
from dataclasses import replace

from argosy.planning.amounts import gib, quantity
from argosy.planning.topology.deployment import Deployment
from argosy.planning.topology.memory import cache_per_token, weights

NARROWEST = 256
"""Columns of an expert that a GPU should have at least: two tiles of a matrix multiplication."""


def heads_not_divided(d: Deployment) -> bool:
    """Return whether GPUs would have different numbers of attention heads."""
    return d.shape.attention_heads % d.split.tensor != 0


def says_heads(d: Deployment) -> str:
    """Return both numbers."""
    return (
        f"parallelism.tensor {d.split.tensor} does not divide the model's {d.shape.attention_heads} attention heads, "
        "of which each GPU has as many"
    )


def key_value_heads_not_divided(d: Deployment) -> bool:
    """Return whether KV heads neither divide among the GPUs nor are divided by them."""
    heads, tensor = d.shape.key_value_heads, d.split.tensor
    return not heads_not_divided(d) and bool(heads % tensor and tensor % heads)


def says_key_value_heads(d: Deployment) -> str:
    """Return both numbers."""
    return (
        f"parallelism.tensor {d.split.tensor} neither divides the model's {d.shape.key_value_heads} KV heads nor is a "
        "multiple of them"
    )


def take_a_tensor(d: Deployment) -> str:
    """Return the advice: the tensor parallelisms up to the GPUs of one node that divide the shape evenly."""
    most = max(d.machine.joined if d.machine else 0, 8)
    return f"take a parallelism.tensor of {_or(size for size in d.tensors if size <= most)}"


def too_few_layers(d: Deployment) -> bool:
    """Return whether a stage would have no layer."""
    return d.split.pipeline > d.shape.layers


def says_too_few_layers(d: Deployment) -> str:
    """Return both numbers."""
    return f"parallelism.pipeline {d.split.pipeline} is more than the model's {d.shape.layers} layers"


def take_fewer_stages(d: Deployment) -> str:
    """Return the advice to use at most as many stages as there are layers."""
    return f"take {d.shape.layers} or fewer"


def experts_not_divided(d: Deployment) -> bool:
    """Return whether GPUs that share each expert times groups of experts are not the GPUs of a layer."""
    split = _expert_split(d) if d.shape.experts else None
    return split is not None and (split[0] * split[1] != d.split.tensor or d.shape.experts % split[1] != 0)


def says_experts(d: Deployment) -> str:
    """Return all four numbers."""
    shared, dealt = _expert_split(d) or (1, 1)
    return (
        f"engine.options moe_tp_size {shared} x moe_ep_size {dealt} must be parallelism.tensor {d.split.tensor}, and "
        f"moe_ep_size must divide the model's {d.shape.experts} experts"
    )


def change_experts(d: Deployment) -> str:
    """Return what always comes out even."""
    return f"take moe_tp_size {d.split.tensor // _dealt(d)} with moe_ep_size {_dealt(d)}, or leave both out"


def stages_uneven(d: Deployment) -> bool:
    """Return whether a stage with more layers makes the others wait."""
    return 1 < d.split.pipeline <= d.shape.layers and d.shape.layers % d.split.pipeline != 0


def says_stages(d: Deployment) -> str:
    """Return the layers of the largest and of the smallest stage, in words."""
    layers, stages = d.shape.layers, d.split.pipeline
    return (
        f"parallelism.pipeline {stages} does not divide the model's {layers} layers: stages of {-(-layers // stages)} "
        f"layers keep those of {layers // stages} waiting"
    )


def take_even_stages(d: Deployment) -> str:
    """Return stages that come out even."""
    return f"take a pipeline of {_or(size for size in range(1, 9) if d.shape.layers % size == 0)}"


def key_value_heads_repeated(d: Deployment) -> bool:
    """Return whether there are more GPUs than KV heads, so that the cache is held several times."""
    return d.split.tensor > d.shape.key_value_heads > 1 and not heads_not_divided(d)


def says_repeated(d: Deployment) -> str:
    """Return how often, and what it costs."""
    heads = d.shape.key_value_heads
    return (
        f"parallelism.tensor {d.split.tensor} over {quantity(heads, 'KV head')} keeps each on "
        f"{d.split.tensor // heads} GPUs: a token takes {cache_per_token(d.shape, d.split) / 1024:g} KiB of cache on "
        f"each, as at tensor {heads}"
    )


def take_as_many_as_heads(d: Deployment) -> str:
    """Return what that would take of a GPU instead."""
    heads = d.shape.key_value_heads
    there = gib(weights(d.shape, replace(d.split, tensor=heads)))
    return f"take tensor {heads}, unless its {there} of weights a GPU are too many"


def experts_narrow(d: Deployment) -> bool:
    """Return whether narrow experts are cut into slices that keep no GPU busy."""
    return bool(d.shape.experts) and d.split.tensor > 1 and _width(d) < NARROWEST and _dealt(d) > 1


def says_narrow(d: Deployment) -> str:
    """Return the width of an expert before and after, in words."""
    return (
        f"the model's {d.shape.experts} experts are {d.shape.intermediate_size} wide, and parallelism.tensor "
        f"{d.split.tensor} leaves {_width(d)} columns of each on a GPU"
    )


def deal_out_experts(d: Deployment) -> str:
    """Return the advice to keep each expert on one GPU."""
    return f"deal out whole experts with engine.options.moe_ep_size {_dealt(d)}"


def _expert_split(d: Deployment) -> tuple[int, int] | None:
    """Return how many GPUs share each expert, and among how many groups experts are distributed.

    None where neither option is set, or one is no positive integer.
    """
    shared = d.options.get("moe_tp_size")
    dealt = d.options.get("moe_ep_size", d.options.get("moe_expert_parallel_size"))
    sizes = [size for size in (shared, dealt) if size is not None]
    if not sizes or not all(type(size) is int and size > 0 for size in sizes):
        return None
    return shared or max(1, d.split.tensor // (dealt or 1)), dealt or max(1, d.split.tensor // (shared or 1))


def _width(d: Deployment) -> int:
    """Return the columns of an expert on one GPU."""
    return d.shape.intermediate_size // (_expert_split(d) or (d.split.tensor, 1))[0]


def _dealt(d: Deployment) -> int:
    """Return the most groups that experts can be distributed among: a divisor of both."""
    return max(size for size in range(1, d.split.tensor + 1) if d.split.tensor % size == d.shape.experts % size == 0)


def _or(numbers: Iterable[int]) -> str:
    every = list(map(str, numbers))
    return every[0] if len(every) == 1 else f"{', '.join(every[:-1])} or {every[-1]}"

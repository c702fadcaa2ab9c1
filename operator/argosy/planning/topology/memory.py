"""The memory of a model on each GPU until it is measured: weights, workspace, key-value cache.

In bytes, of the fullest GPU.

Weights: `parameters` times their bits, over tensor x pipeline GPUs; embeddings and output layer stay at 16 bits.
Cache: a key and a value of every KV head, layer and token. Workspace: the activations of one layer for as many tokens
as one step takes, logits for as many sequences, and what CUDA and NCCL take by themselves.
"""

from dataclasses import dataclass

from argosy_agent.contract.builds import ModelShape

PLAIN_BITS = 16
"""Bits of an activation, and of a weight that is not quantized."""
SCALE_BITS = 16 / 128
"""Additional memory of a weight of 4 bits: AWQ has a scale of 16 bits for a group of 128."""
CONTEXT = 1 << 30
"""Bytes of a GPU that CUDA's context, the libraries' kernels and workspaces, and NCCL's buffers take."""
TOKENS_A_STEP = 8192
"""Tokens that one step takes where nothing is said: `max_num_tokens` of trtllm-build by default."""


@dataclass(frozen=True, slots=True)
class Split:
    """The split of a model over GPUs, with the sizes that it is built for.

    `tensor`: GPUs that share each layer; `pipeline`: groups of them with consecutive layers. `sequences`: the most
    concurrent sequences; `length`: the longest, in tokens; `step_tokens`: the most tokens of one step.
    """

    tensor: int = 1
    pipeline: int = 1
    weight_bits: int = PLAIN_BITS
    cache_bits: int = PLAIN_BITS
    length: int = 0
    sequences: int = 1
    step_tokens: int = TOKENS_A_STEP

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        return self.tensor * self.pipeline


@dataclass(frozen=True, slots=True)
class Budget:
    """The memory that a model uses on a GPU with `usable` bytes, and the rest for its cache."""

    usable: int
    weights: int
    workspace: int
    sequence: int

    @property
    def needed(self) -> int:
        """The least it runs with: weights, workspace, the cache of one sequence."""
        return self.weights + self.workspace + self.sequence

    @property
    def left(self) -> int:
        """Bytes for the cache."""
        return max(0, self.usable - self.weights - self.workspace)

    @property
    def sequences(self) -> int:
        """Sequences of the longest length whose cache fits."""
        return self.left // max(1, self.sequence)


def has_weights(shape: ModelShape) -> bool:
    """Return whether the size of the weights is known."""
    return bool(shape.parameters or shape.weight_bytes)


def budget(shape: ModelShape, split: Split, usable: int) -> Budget:
    """Return the memory budget of a model on each GPU with `usable` bytes."""
    sequence = cache_per_token(shape, split) * split.length
    return Budget(usable, weights(shape, split), workspace(shape, split), sequence)


def weights(shape: ModelShape, split: Split) -> int:
    """Return bytes of weights. Of a built engine its own, else those counted; KV heads that GPUs share are on each."""
    if shape.weight_bytes:
        return _up(shape.weight_bytes, split.gpus)
    bits = split.weight_bits + (SCALE_BITS if split.weight_bits < 8 else 0)
    stage = _up(shape.layers, split.pipeline)
    layers = (shape.parameters - shape.embedding_parameters) * stage / shape.layers / split.tensor
    repeated = kv_heads(shape, split.tensor) - shape.key_value_heads / split.tensor
    layers += stage * 2 * shape.hidden_size * shape.head_size * repeated
    return int(layers * bits / 8 + _tables(shape, split) * max(PLAIN_BITS, split.weight_bits) / 8)


def cache_per_token(shape: ModelShape, split: Split) -> int:
    """Return bytes of keys and values of one token."""
    pair = 2 * kv_heads(shape, split.tensor) * shape.head_size
    return _up(shape.layers, split.pipeline) * pair * split.cache_bits // 8


def kv_heads(shape: ModelShape, tensor: int) -> int:
    """Return the KV heads on each of `tensor` GPUs: one at least, so that more GPUs than heads each
    have a copy of one.
    """
    return _up(shape.key_value_heads, tensor)


def workspace(shape: ModelShape, split: Split) -> int:
    """Return bytes of what is neither weights nor cache: an estimate, for the compiler decides what it reuses."""
    heads = shape.attention_heads + 2 * shape.key_value_heads
    width = heads * shape.head_size + 2 * shape.intermediate_size * max(1, shape.experts_per_token)
    activations = split.step_tokens * (2 * shape.hidden_size + width // split.tensor) * PLAIN_BITS // 8
    return CONTEXT + activations + split.sequences * shape.vocabulary * 4


def active_parameters(shape: ModelShape) -> int:
    """Return the number of weights used per token: in a mixture of experts only those of the selected experts."""
    idle = shape.experts - shape.experts_per_token if shape.experts else 0
    return shape.parameters - shape.layers * idle * 3 * shape.hidden_size * shape.intermediate_size


def all_reduces(shape: ModelShape) -> int:
    """Return how often a token waits for the other GPUs that share its layers: after attention and after the
    feed-forward.
    """
    return 2 * shape.layers


def _tables(shape: ModelShape, split: Split) -> float:
    """Return the parameters of the embeddings on the fullest GPU: of several stages the first has one table, the last
    one.
    """
    one = shape.vocabulary * shape.hidden_size
    return (shape.embedding_parameters if split.pipeline == 1 else min(one, shape.embedding_parameters)) / split.tensor


def _up(amount: int, parts: int) -> int:
    return -(-amount // parts)

"""The size of a language model's cache."""

import pytest
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.parameters import Parameters
from argosy_runtime.backends.transformers.sizing import (
    ON_CPU,
    ON_GPU,
    CacheSize,
    Defaults,
    cache_size,
    memory_bytes,
)
from argosy_runtime.errors import ServingError


def sized(defaults: Defaults = ON_CPU, positions: int = 2048, per_token: int = 1024, **fields: str) -> CacheSize:
    config = ModelConfig(name="m")
    for key, value in fields.items():
        config.parameters[key].string_value = value
    return cache_size("m", Parameters(config), per_token, positions, defaults)


def test_blocks_count_before_memory() -> None:
    assert sized(num_blocks="3", kv_cache_memory="1GiB", page_size="8").tokens == 24


def test_memory_is_what_is_set_or_less() -> None:
    assert sized(kv_cache_memory="1MiB").num_blocks == 2**20 // (1024 * 32)


def test_the_default_holds_some_full_sequences() -> None:
    assert sized(positions=100) == CacheSize(32, 25, 256)
    assert sized(positions=10**6).tokens == 2048 * 8


def test_the_default_stays_within_bounds_and_is_never_nothing() -> None:
    assert sized(ON_GPU, positions=10**6, per_token=2**20).num_blocks == 4 * 2**30 // (2**20 * 256)
    assert sized(per_token=2**30).num_blocks == 1


@pytest.mark.parametrize(
    ("text", "expected"), [("7", 7), ("2k", 2000), ("1.5KiB", 1536), ("2 GB", 2 * 10**9), ("1gi", 2**30)]
)
def test_bytes_are_read(text: str, expected: int) -> None:
    assert memory_bytes("m", text) == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"kv_cache_memory": "lots"}, "parameter 'kv_cache_memory' is 'lots', expected bytes"),
        ({"kv_cache_memory": "10"}, "kv_cache_memory '10' holds no block of 32 tokens, which takes 32768 bytes"),
        ({"num_blocks": "0"}, "parameter 'num_blocks' is 0, expected 1 or more"),
        ({"page_size": "2"}, "parameter 'page_size' is 2, expected 4 or more"),
    ],
)
def test_what_cannot_be_is_named(settings: dict[str, str], expected: str) -> None:
    with pytest.raises(ServingError, match=expected):
        sized(**settings)

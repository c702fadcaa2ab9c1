"""The header by which a load balancer learns how full the caches are."""

import pytest

from argosy_runtime.protocol.orca import CacheLoad, load_header, load_of_blocks

SAMPLES = [
    ({"kv_cache_block_type": "used", "model": "m"}, 25.0),
    ({"kv_cache_block_type": "max", "model": "m"}, 100.0),
    ({"kv_cache_block_type": "tokens_per", "model": "m"}, 64.0),
    ({"kv_cache_block_type": "fraction", "model": "m"}, 0.25),
]


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("text", "TEXT named_metrics.kv_cache_utilization=0.250000, named_metrics.max_token_capacity=6400"),
        ("json", 'JSON {"named_metrics":{"kv_cache_utilization":0.25,"max_token_capacity":6400}}'),
        ("xml", ""),
    ],
)
def test_encodings(encoding: str, expected: str) -> None:
    assert load_header(encoding, CacheLoad(0.25, 6400)) == expected


def test_the_load_of_blocks() -> None:
    assert load_of_blocks(SAMPLES) == CacheLoad(0.25, 6400)
    assert load_of_blocks([(labels, 0.0) for labels, _ in SAMPLES]) == CacheLoad(0.0, 0)


def test_it_is_unknown_without_a_sample_or_with_a_negative_one() -> None:
    assert load_of_blocks(SAMPLES[:2]) is None
    assert load_of_blocks([]) is None
    assert load_of_blocks([*SAMPLES, ({"kv_cache_block_type": "used"}, -1.0)]) is None

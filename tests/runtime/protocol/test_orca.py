"""The header by which a load balancer learns how full the caches are."""

import pytest

from argosy_runtime.protocol.orca import load_header

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
    assert load_header(encoding, SAMPLES) == expected


def test_without_a_sample_there_is_no_header() -> None:
    assert load_header("text", SAMPLES[:2]) == ""
    assert load_header("text", []) == ""


def test_an_empty_cache_is_not_used() -> None:
    empty = [(labels, 0.0) for labels, _ in SAMPLES]
    assert load_header("text", empty).startswith("TEXT named_metrics.kv_cache_utilization=0.000000")

"""Protobuf messages as Triton's JSON."""

import json

from hypothesis import given
from hypothesis import strategies as st
from tritonclient.grpc import model_config_pb2 as mc
from tritonclient.grpc import service_pb2 as pb

from argosy_runtime.protocol.json import messages as json_messages


def test_config_prints_defaults_and_numbers() -> None:
    config = mc.ModelConfig(name="m", max_batch_size=4)
    config.input.add(name="I", data_type=mc.TYPE_FP32, dims=[-1, 2**40])
    config.dynamic_batching.max_queue_delay_microseconds = 100
    config.dynamic_batching.priority_queue_policy[2**63].timeout_action = mc.ModelQueuePolicy.DELAY
    config.parameters["k"].string_value = "v"
    config.version_policy.latest.num_versions = 2
    document = json.loads(json_messages.message_json(config))
    assert document["input"][0]["dims"] == [-1, 2**40]
    assert document["input"][0]["data_type"] == "TYPE_FP32"
    assert document["input"][0]["is_shape_tensor"] is False
    assert document["dynamic_batching"]["max_queue_delay_microseconds"] == 100
    policy = document["dynamic_batching"]["priority_queue_policy"][str(2**63)]
    assert policy == {
        "timeout_action": "DELAY",
        "default_timeout_microseconds": 0,
        "allow_timeout_override": False,
        "max_queue_size": 0,
    }
    assert document["parameters"] == {"k": {"string_value": "v"}}
    assert document["version_policy"] == {"latest": {"num_versions": 2}}
    assert "sequence_batching" not in document
    assert (document["platform"], document["output"]) == ("", [])


@given(st.integers(0, 2**64 - 1))
def test_statistics_print_every_counter(count: int) -> None:
    statistics = pb.ModelStatisticsResponse()
    model = statistics.model_stats.add(name="m", version="1", inference_count=count)
    model.batch_stats.add(batch_size=2).compute_infer.ns = count
    printed = json.loads(json_messages.statistics_json(statistics))["model_stats"][0]
    assert printed["inference_count"] == count
    zero = {"count": 0, "ns": 0}
    counters = (
        "success", "fail", "queue", "compute_input", "compute_infer", "compute_output", "cache_hit", "cache_miss",
    )  # fmt: skip
    assert printed["inference_stats"] == dict.fromkeys(counters, zero)
    assert printed["batch_stats"][0]["compute_infer"] == {"count": 0, "ns": count}


def test_index_leaves_out_what_is_unknown() -> None:
    index = pb.RepositoryIndexResponse()
    index.models.add(name="a", version="1", state="UNAVAILABLE", reason="broken")
    index.models.add(name="b")
    assert json_messages.index_json(index) == (
        b'[{"name":"a","version":"1","state":"UNAVAILABLE","reason":"broken"},{"name":"b"}]'
    )


def test_metadata_bytes() -> None:
    metadata = pb.ModelMetadataResponse(name="m", versions=["1"], platform="python")
    metadata.inputs.add(name="I", datatype="FP32", shape=[-1, 3])
    assert json_messages.message_json(metadata) == (
        b'{"name":"m","versions":["1"],"platform":"python","inputs":[{"name":"I","datatype":"FP32",'
        b'"shape":[-1,3]}],"outputs":[]}'
    )

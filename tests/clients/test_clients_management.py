"""Health, metadata, configuration, statistics and the model repository, by each client."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.clients.four import FourClient
from tritonclient.utils import InferenceServerException

ROW = np.arange(16, dtype=np.int32).reshape(1, 16)


def test_health(client: FourClient) -> None:
    assert client.is_server_live() is True
    assert client.is_server_ready() is True
    assert client.is_model_ready("add_sub") is True
    assert client.is_model_ready("add_sub", "1") is True
    assert client.is_model_ready("versioned", "2") is False


def test_health_of_what_is_unknown_or_not_loaded(client: FourClient) -> None:
    assert client.is_model_ready("no_such_model") is False
    assert client.is_model_ready("reshaped") is False


def test_server_metadata(client: FourClient) -> None:
    metadata = client.message("get_server_metadata")
    assert metadata["name"] == "argosy"
    assert metadata["version"]
    assert {"model_repository", "binary_tensor_data", "statistics"} <= set(metadata["extensions"])


def test_model_metadata(client: FourClient) -> None:
    metadata = client.message("get_model_metadata", "add_sub")
    assert (metadata["name"], metadata["platform"], metadata["versions"]) == ("add_sub", "python", ["1"])
    inputs = [(i["name"], i["datatype"], [int(size) for size in i["shape"]]) for i in metadata["inputs"]]
    assert inputs == [("INPUT0", "INT32", [-1, 16]), ("INPUT1", "INT32", [-1, 16])]
    assert [tensor["name"] for tensor in metadata["outputs"]] == ["OUTPUT0", "OUTPUT1"]
    assert client.message("get_model_metadata", "versioned")["versions"] == ["1", "3"]


def test_model_config(client: FourClient) -> None:
    answer = client.message("get_model_config", "add_sub")
    config = answer["config"] if client.is_grpc else answer
    assert (config["name"], config["backend"], config["max_batch_size"]) == ("add_sub", "python", 8)
    assert config["dynamic_batching"]["preferred_batch_size"] == [4, 8]
    assert [(tensor["name"], tensor["data_type"]) for tensor in config["input"]] == [
        ("INPUT0", "TYPE_INT32"),
        ("INPUT1", "TYPE_INT32"),
    ]
    ensemble = client.message("get_model_config", "chain")
    steps = (ensemble["config"] if client.is_grpc else ensemble)["ensemble_scheduling"]["step"]
    assert [step["model_name"] for step in steps] == ["identity"] * 3


def _statistics(client: FourClient, model: str, version: str = "") -> dict[str, Any]:
    (statistics,) = client.message("get_inference_statistics", model, version)["model_stats"]
    return statistics


def _count(of: dict[str, Any], key: str) -> int:
    """Return the value of a uint64, which JSON from protobuf writes as text and leaves out where it is 0."""
    return int(of.get(key, 0))


def test_statistics_count_requests_and_rows(client: FourClient) -> None:
    before = _statistics(client, "add_sub")
    client.add_sub(np.repeat(ROW, 3, axis=0), np.repeat(ROW, 3, axis=0))
    client.add_sub(ROW, ROW)
    after = _statistics(client, "add_sub", "1")
    assert _count(after, "inference_count") - _count(before, "inference_count") == 4
    assert _count(after, "execution_count") - _count(before, "execution_count") == 2
    success = (after["inference_stats"]["success"], before["inference_stats"].get("success", {}))
    assert _count(success[0], "count") - _count(success[1], "count") == 2
    assert _count(success[0], "ns") > _count(success[1], "ns")
    assert {_count(batch, "batch_size") for batch in after["batch_stats"]} >= {1, 3}


def test_statistics_count_failures(client: FourClient) -> None:
    def failures() -> int:
        return _count(_statistics(client, "failing")["inference_stats"].get("fail", {}), "count")

    before = failures()
    with pytest.raises(InferenceServerException):
        client.infer("failing", [client.tensor("HOW", "BYTES", [b"raise"])])
    assert failures() == before + 1


def test_statistics_of_every_model(client: FourClient) -> None:
    statistics = client.message("get_inference_statistics")["model_stats"]
    assert {(entry["name"], entry["version"]) for entry in statistics} >= {
        ("chain", "1"),
        ("versioned", "1"),
        ("versioned", "3"),
    }


def _index(client: FourClient) -> dict[tuple[str, str], str]:
    answer = client.message("get_model_repository_index")
    rows = answer.get("models", []) if client.is_grpc else answer
    return {(row["name"], row.get("version", "")): row.get("state", "") for row in rows}


def test_index(client: FourClient) -> None:
    index = _index(client)
    assert index["add_sub", "1"] == "READY"
    assert index["versioned", "3"] == "READY"
    assert index["reshaped", ""] == ""
    assert ("versioned", "2") not in index


def test_load_and_unload(client: FourClient) -> None:
    client.load_model("autoconf")
    assert client.is_model_ready("autoconf")
    inputs = [client.tensor("IN", "FP32", [[1, 2, 3, 4]])]
    assert client.infer("autoconf", inputs).as_numpy("OUT").tolist() == [[-1, -2, -3, -4]]
    client.unload_model("autoconf")
    assert not client.is_model_ready("autoconf")
    with pytest.raises(InferenceServerException, match="autoconf"):
        client.infer("autoconf", inputs)
    assert _index(client)["autoconf", "1"] in ("UNLOADING", "UNAVAILABLE")


def test_load_with_a_config_of_its_own(client: FourClient) -> None:
    answer = client.message("get_model_config", "scale")
    config = answer["config"] if client.is_grpc else answer
    changed = {**config, "parameters": {"factor": {"string_value": "5"}}}
    inputs = [client.tensor("IN", "INT32", ROW)]
    try:
        client.load_model("scale", config=json.dumps(changed))
        np.testing.assert_array_equal(client.infer("scale", inputs).as_numpy("OUT"), ROW * 5)
    finally:
        client.load_model("scale", config=json.dumps(config))
    np.testing.assert_array_equal(client.infer("scale", inputs).as_numpy("OUT"), ROW * 3)


def test_load_from_files_alone(client: FourClient) -> None:
    """A model that no folder holds: its config and its code come with the request."""
    source = (Path(__file__).resolve().parents[1] / "models/identity/1/model.py").read_bytes()
    tensor = {"data_type": "TYPE_FP32", "dims": [2]}
    config = {
        "backend": "python",
        "input": [{"name": "INPUT0", **tensor}],
        "output": [{"name": "OUTPUT0", **tensor}],
    }
    client.load_model("sent", config=json.dumps(config), files={"file:1/model.py": source})
    result = client.infer("sent", [client.tensor("INPUT0", "FP32", [1.5, 2.5])])
    assert result.as_numpy("OUTPUT0").tolist() == [1.5, 2.5]
    client.unload_model("sent")
    assert not client.is_model_ready("sent")


def test_loading_what_is_not_there_is_an_error(client: FourClient) -> None:
    with pytest.raises(InferenceServerException, match="failed to load 'no_such_model'"):
        client.load_model("no_such_model")

"""Options of a request are read by the tables that manifests are checked with; errors have the path of the field."""

from typing import Any

import pytest

from argosy_agent.contract.builds import BuildFailure, BuildRequest, DataSource
from argosy_builder.contract import BuildError
from argosy_builder.options import read_options


def request(builder: str, **changes: Any) -> BuildRequest:
    """Return a request for an engine, with these fields changed."""
    return BuildRequest(builder, "9.0", "image", "file:///engines", DataSource("file:///model"), **changes)


def test_an_option_that_is_not_set_has_its_default() -> None:
    options = read_options(request("onnxruntime", precision="int8", options={"opset": 17}))
    assert options["opset"] == 17
    assert (options["per_channel"], options["calibrate_method"]) == (False, "MinMax")
    assert options["nodes_to_exclude"] is None


def test_a_default_in_words_is_no_value() -> None:
    options = read_options(request("tensorrt"))
    assert (options["workspace"], options["tactic_sources"], options["strongly_typed"]) == (None, None, None)
    assert (options["builder_optimization_level"], options["timing_cache"]) == (3, True)


@pytest.mark.parametrize(
    ("builder", "options", "message"),
    [
        ("onnxruntime", {"per_chanel": True}, "per_chanel: onnxruntime has no such option; did you mean 'per_channel"),
        ("aotinductor", {"strict": 1}, "strict: expected true or false; found 1"),
        ("aotinductor", {"cpp.simdlen": 128}, "cpp.simdlen: 128 is none of 256, 512"),
        ("onnxruntime", {"opset": True}, "opset: expected a whole number; found True"),
        ("onnxruntime", {"opset": 12}, "opset: must be 13 or more; found 12"),
        ("onnxruntime", {"nodes_to_exclude": []}, "nodes_to_exclude: must have 1 or more entries; found 0"),
        ("tensorrt", {"profiles": [{"x": {"min": [1]}}]}, "profiles[0].x: opt, max is required: a profile has a min"),
        ("tensorrt", {"exclude_lean_runtime": True}, "exclude_lean_runtime: needs version_compatible: true"),
        ("tensorrt_llm", {"max_draft_len": 2}, "max_draft_len: needs speculative_decoding_mode"),
        ("tensorrt_llm", {"reduce_fusion": True}, "reduce_fusion: joins what several GPUs add up, and parallelism"),
    ],
)
def test_an_error_has_the_path_of_its_option(builder: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(BuildError) as raised:
        read_options(request(builder, options=options))

    assert raised.value.failure is BuildFailure.INVALID_OPTIONS
    assert raised.value.message.startswith(f"spec.engine.options.{message}")


def test_missing_calibration_data_is_a_failure_of_its_own() -> None:
    with pytest.raises(BuildError) as raised:
        read_options(request("tensorrt_llm", precision="fp8"))

    assert raised.value.failure is BuildFailure.CALIBRATION_MISSING
    assert raised.value.message.startswith("spec.engine.calibration: is required: fp8 finds its ranges in data")


def test_a_precision_that_the_builder_does_not_make_is_refused() -> None:
    with pytest.raises(BuildError, match=r"spec\.engine\.precision: aotinductor makes fp32, bf16, fp16, and not int8"):
        read_options(request("aotinductor", precision="int8"))

"""Bad input over the wire is refused at once, names what is wrong, and leaves the server as it was."""

import base64
import gzip
import http.client
import json
import signal
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pytest
from tests.serve import process
from tests.serve.conftest import CONFIG, MODEL, AddModel, Start
from tests.serve.process import PATIENCE_S, Serving, wait_until

DEEP = b'{"a":' * 10_000 + b"1" + b"}" * 10_000
TENSOR: dict[str, Any] = {"name": "X", "datatype": "INT32", "shape": [1], "data": [3]}
DECLARED: dict[str, Any] = {
    "backend": "python",
    "max_batch_size": 0,
    "input": [{"name": "X", "data_type": "TYPE_INT32", "dims": [1]}],
    "output": [{"name": "Y", "data_type": "TYPE_INT32", "dims": [1]}],
}
CODE = base64.b64encode(MODEL.format(initialize="pass", execute="y = x").encode()).decode()
MOST = 2**31 - 1
LIMIT_MB = 128


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """Yield a server that clients may have load models and register memory."""
    folder = tmp_path_factory.mktemp("bad")
    (folder / "models" / "echo" / "1").mkdir(parents=True)
    (folder / "models" / "echo" / "1" / "model.py").write_text(MODEL.format(initialize="pass", execute="y = x"))
    (folder / "models" / "echo" / "config.pbtxt").write_text(CONFIG)
    flags = ("--model-control-mode=explicit", "--load-model=echo", "--allow-client-shm=true")
    serving = process.start(folder / "models", folder / "server.log", *flags)
    yield serving.wait_until_ready()
    serving.end()


@pytest.fixture(autouse=True)
def unharmed(server: Serving) -> Iterator[None]:
    """Fail a test after which the server answers no more, or has grown, or has met an error of its own."""
    before = psutil.Process(server.process.pid).memory_info().rss
    yield
    assert server.infer("echo", 3) == (200, 3)
    assert psutil.Process(server.process.pid).memory_info().rss - before < LIMIT_MB << 20
    assert "Traceback" not in server.text


def load(server: Serving, model: str, **changes: Any) -> tuple[int, str]:
    """Load `model` with this configuration and a file; `files` are further ones. Return status and text."""
    files = changes.pop("files", {})
    parameters = {"config": json.dumps({**DECLARED, **changes}), "file:1/model.py": CODE, **files}
    status, text = server.ask(f"/v2/repository/models/{quote(model, safe='')}/load", {"parameters": parameters})
    return status, text.decode()


@pytest.mark.parametrize("name", ["..", "../echo", "/etc", "echo/1", "../../../etc/passwd"])
def test_a_name_that_is_a_path_is_refused(server: Serving, name: str) -> None:
    refused = f"invalid model name '{name}', model name must not contain path traversal characters"
    assert load(server, name) == (400, json.dumps({"error": refused}, separators=(",", ":")))
    status, text = server.ask(f"/v2/models/{quote(name, safe='')}/config")
    assert (status, json.loads(text)["error"]) == (404, f"Request for unknown model: '{name}' is not found")


@pytest.mark.parametrize("name", [".", "echo\0", "a" * 5000])
def test_a_name_that_no_folder_has_is_unknown(server: Serving, name: str) -> None:
    status, text = server.ask(f"/v2/repository/models/{quote(name, safe='')}/load", {})
    assert (status, json.loads(text)["error"]) == (
        500,
        f"failed to load '{name}', failed to poll from model repository",
    )


@pytest.mark.parametrize("version", ["..%2f1", "-1", "0x1", "1%00", "9" * 20])
def test_a_version_that_is_no_number_is_refused(server: Serving, version: str) -> None:
    assert server.ask(f"/v2/models/echo/versions/{version}/config")[0] in (400, 404)


@pytest.mark.parametrize("path", ["../evil", "1/../../evil", "a/../../../evil", "", ".", "..", "1/a\0b"])
def test_a_file_outside_the_model_is_refused(server: Serving, path: str) -> None:
    status, text = load(server, "fresh", files={f"file:{path}": CODE})
    assert status == 500
    assert "must stay within model directory." in text


def test_a_file_by_an_absolute_path_stays_in_the_model(server: Serving, tmp_path: Path) -> None:
    assert load(server, "absolute", files={f"file:{tmp_path}/evil": CODE})[0] == 200
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize("header", [{}, {"Inference-Header-Content-Length": "0"}], ids=["JSON", "raw"])
def test_a_body_that_unpacks_to_a_gibibyte_is_refused(server: Serving, encoding: str, header: dict[str, str]) -> None:
    packing = zlib.compressobj(9, zlib.DEFLATED, 31 if encoding == "gzip" else 15)
    bomb = b"".join([packing.compress(bytes(1 << 24)) for _ in range(64)]) + packing.flush()
    status, text = post(server, "/v2/models/echo/infer", bomb, {"Content-Encoding": encoding, **header})
    assert status == 400
    assert "Decompressed data size exceeds the maximum allowed value" in text


def post(server: Serving, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
    """Send a request with headers of its own. Return status and text."""
    connection = http.client.HTTPConnection("127.0.0.1", server.ports["HTTP"], timeout=PATIENCE_S)
    try:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize(
    "header",
    [
        {"Inference-Header-Content-Length": "-1"},
        {"Inference-Header-Content-Length": "9" * 30},
        {"Inference-Header-Content-Length": "1e3"},
        {"Content-Length": "-1"},
        {"Content-Length": "9" * 30},
        {"Content-Length": "5, 5"},
        {"Content-Encoding": "gzip, gzip"},
    ],
    ids=str,
)
def test_a_header_that_lies_is_refused(server: Serving, header: dict[str, str]) -> None:
    status, text = post(server, "/v2/models/echo/infer", json.dumps({"inputs": [TENSOR]}).encode(), header)
    assert status in (400, 501)
    assert json.loads(text)["error"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"shape": [2**32, 2**32]}, "causes total element count to exceed maximum size"),
        ({"shape": [2**63]}, "contains one or more invalid dimensions"),
        ({"data": [2**63]}, "attempt to access JSON non-signed-integer as signed-integer"),
        ({"data": None, "parameters": {"binary_data_size": 2**63}}, "'data'"),
    ],
    ids=str,
)
def test_sizes_that_overflow_are_refused(server: Serving, change: dict[str, Any], words: str) -> None:
    status, text = server.ask("/v2/models/echo/infer", {"inputs": [TENSOR | change]})
    assert status in (400, 500)
    assert words in text.decode()


def test_doubled_inputs_are_refused(server: Serving) -> None:
    status, text = server.ask("/v2/models/echo/infer", {"inputs": [TENSOR, TENSOR]})
    assert (status, b"input 'X' already exists in request" in text) == (400, True)


PATHS = {
    "models/echo/infer": 500,
    "models/echo/generate": 500,
    "models/echo/generate_stream": 500,
    "repository/models/echo/load": 200,
    "repository/index": 200,
    "trace/setting": 200,
    "logging": 200,
    "systemsharedmemory/region/r/register": 400,
}


@pytest.mark.parametrize("path", PATHS)
def test_json_of_depth_ten_thousand_is_answered(server: Serving, path: str) -> None:
    status, text = server.ask(f"/v2/{path}", DEEP)
    assert (status >= 400) == (PATHS[path] >= 400), text
    assert b"unexpected" not in text or b"front end" not in text


@pytest.mark.parametrize("key", ["/../etc/passwd", "a/b", "/a/b", "..", "/" + "a" * 300, "a\0b"])
def test_a_shared_memory_key_that_is_a_path_is_refused(server: Serving, key: str) -> None:
    where = "/v2/systemsharedmemory/region/r/register"
    status, text = server.ask(where, {"key": key, "offset": 0, "byte_size": 4})
    assert (status, json.loads(text)["error"]) == (500, f"Unable to open shared memory region: '{key}'")


OLDEST = {"max_sequence_idle_microseconds": 1_000_000, "oldest": {"max_candidate_sequences": 4}}
STATE = {
    "input_name": "S",
    "output_name": "T",
    "data_type": "TYPE_INT32",
    "dims": [4],
    "initial_state": [{"name": "i", "data_type": "TYPE_INT32", "dims": [4], "data_file": "f"}],
}
CONFIGS: dict[str, tuple[dict[str, Any], str]] = {
    "instances": ({"instance_group": [{"count": MOST, "kind": "KIND_CPU"}]}, "instance_group[0].count"),
    "kind": ({"instance_group": [{"kind": 99}]}, "instance_group[0].kind"),
    "slots": ({"max_batch_size": MOST, "sequence_batching": {"direct": {}}}, "max_batch_size"),
    "candidates": (
        {"max_batch_size": 4, "sequence_batching": {"oldest": {"max_candidate_sequences": MOST}}},
        "sequence_batching.oldest.max_candidate_sequences",
    ),
    "warm-up": (
        {
            "model_warmup": [
                {
                    "name": "w",
                    "count": MOST,
                    "inputs": {"X": {"data_type": "TYPE_INT32", "dims": [1], "zero_data": True}},
                }
            ]
        },
        "model_warmup[0].count",
    ),
    "type of a control": (
        {
            "sequence_batching": {
                **OLDEST,
                "control_input": [
                    {"name": "C", "control": [{"kind": "CONTROL_SEQUENCE_CORRID", "data_type": "TYPE_FP32"}]}
                ],
            }
        },
        "sequence_batching.control_input[0].control[0].data_type",
    ),
    "size of a state's file": (
        {"sequence_batching": {**OLDEST, "state": [STATE]}, "files": {"file:initial_state/f": "AAAA"}},
        "initial_state setting expects 16 bytes",
    ),
}


@pytest.mark.parametrize("case", CONFIGS)
def test_a_configuration_that_no_server_can_serve_is_refused(server: Serving, case: str) -> None:
    change, words = CONFIGS[case]
    status, text = load(server, "fresh", **change)
    assert status in (400, 500)
    assert words in text


def test_a_compressed_body_that_is_cut_or_none_is_refused(server: Serving) -> None:
    body = gzip.compress(json.dumps({"inputs": [TENSOR]}).encode())
    assert post(server, "/v2/models/echo/infer", body[:-9], {"Content-Encoding": "gzip"})[0] == 400
    assert post(server, "/v2/models/echo/infer", b"junk", {"Content-Encoding": "gzip"})[0] == 500


def test_a_sequence_may_end_after_the_signal(serve: Start, add_model: AddModel) -> None:
    folder = add_model("following")
    with (folder / "config.pbtxt").open("a") as config:
        config.write("sequence_batching { max_sequence_idle_microseconds: 600000000 }\n")
    following = serve().wait_until_ready()
    assert _follow(following, sequence_start=True)[0] == 200
    following.process.send_signal(signal.SIGTERM)
    wait_until(lambda: "stopping" in following.text, following.log)
    assert _follow(following)[0] == 200
    status, text = following.ask(
        "/v2/models/following/infer", {"inputs": [TENSOR], "parameters": {"sequence_id": 8, "sequence_start": True}}
    )
    assert (status, b"Server is stopping" in text) == (503, True)
    assert _follow(following, sequence_end=True)[0] == 200
    assert following.process.wait(PATIENCE_S / 2) == 0


def _follow(server: Serving, **flags: bool) -> tuple[int, bytes]:
    parameters = {"sequence_id": 7, **flags}
    return server.ask("/v2/models/following/infer", {"inputs": [TENSOR], "parameters": parameters})

"""Headers and forms of bodies: what is forwarded, compressed, sent in chunks, measured wrongly, sent twice."""

import gzip
import json
import zlib
from typing import Any

from tests.differential.http_calls import Call, Case, get, infer, post, tensor

IDENTITY = "/v2/models/identity/infer"
HEADER = "Inference-Header-Content-Length"
ONE = tensor("INPUT0", [1, 2], "FP32", [1, 2])
PLAIN = json.dumps({"inputs": [ONE]}).encode()


def _forward(headers: dict[str, str], parameters: dict[str, Any] | None = None) -> Call:
    document: dict[str, Any] = {"inputs": [tensor("IN", [1], "FP32", [1])]}
    if parameters:
        document["parameters"] = parameters
    return post("/v2/models/parameters/infer", document, headers)


def _body(content: bytes, **headers: str) -> Call:
    return post(IDENTITY, content, {name.replace("_", "-"): value for name, value in headers.items()})


def _chunks(content: bytes, *sizes: int, **headers: str) -> Call:
    pieces, at = [], 0
    for size in (*sizes, len(content)):
        if content[at : at + size]:
            pieces.append(b"%X\r\n%b\r\n" % (len(content[at : at + size]), content[at : at + size]))
        at += size
    chunked = b"".join((*pieces, b"0\r\n\r\n"))
    return _body(chunked, Transfer_Encoding="chunked", Content_Length=str(len(chunked)), **headers)


def _nested(depth: int, value: str = "1") -> Call:
    data = "[" * depth + value + "]" * depth
    kind, model = ("FP32", "identity") if value == "1" else ("BYTES", "bytes_identity")
    text = f'{{"inputs":[{{"name":"INPUT0","shape":[1,1],"datatype":"{kind}","data":{data}}}]}}'
    return post(f"/v2/models/{model}/infer", text)


def _shape(*shape: int, datatype: str = "FP32") -> Call:
    return infer("identity", tensor("INPUT0", list(shape), datatype, [1, 2, 3, 4]))


CALLS = {
    "forwarded header": _forward({"fwd-a": "1"}),
    "forwarded header in capitals": _forward({"FWD-Name": "Value"}),
    "forwarded header twice": _forward({"fwd-a": "1", "Fwd-A": "2"}),
    "forwarded header, empty": _forward({"fwd-a": ""}),
    "forwarded header, quoted": _forward({"fwd-a": 'a "quote" and a \\'}),
    "other header": _forward({"x-fwd-a": "1", "accept": "*/*"}),
    "forwarded header and parameters": _forward({"fwd-a": "1"}, {"b": 2, "c": True}),
    "forwarded header of a parameter": _forward({"fwd-a": "1"}, {"fwd-a": 5}),
    "forwarded reserved header": _forward({"priority": "1"}),
    "forwarded triton header": _forward({"triton_fwd_x": "1"}),
    "generate forwards": post("/v2/models/text/generate", {"text_input": "hi"}, {"fwd-a": "1"}),
    "gzip": _body(gzip.compress(PLAIN), Content_Encoding="gzip"),
    "gzip called deflate": _body(gzip.compress(PLAIN), Content_Encoding="deflate"),
    "deflate called gzip": _body(zlib.compress(PLAIN), Content_Encoding="gzip"),
    "identity": _body(PLAIN, Content_Encoding="identity"),
    "encoding in capitals": _body(gzip.compress(PLAIN), Content_Encoding="GZIP"),
    "encoding empty": _body(PLAIN, Content_Encoding=""),
    "two encodings": _body(gzip.compress(PLAIN), Content_Encoding="gzip, deflate"),
    "unknown encoding": _body(PLAIN, Content_Encoding="zstd"),
    "gzip of nothing": _body(b"", Content_Encoding="gzip"),
    "generate compressed": post(
        "/v2/models/text/generate", gzip.compress(b'{"text_input":"hi"}'), {"Content-Encoding": "gzip"}
    ),
    "generate accepts gzip": post("/v2/models/text/generate", {"text_input": "hi"}, {"Accept-Encoding": "gzip"}),
    "accepts gzip on an error": post(IDENTITY, {"inputs": []}, {"Accept-Encoding": "gzip"}),
    "byte order mark": _body(b"\xef\xbb\xbf" + PLAIN),
    "chunks": _chunks(PLAIN),
    "three chunks": _chunks(PLAIN, 10, 20),
    "gzip in chunks": _chunks(gzip.compress(PLAIN), 5, Content_Encoding="gzip"),
    "header length no number": post(IDENTITY, PLAIN, {HEADER: "abc"}),
    "header length empty": post(IDENTITY, PLAIN, {HEADER: ""}),
    "nesting of 50": _nested(50),
    "nesting of 50, strings": _nested(50, '"a"'),
    "nesting of 99": _nested(99),
    "nesting of 100": _nested(100),
    "nesting of 120, strings": _nested(120, '"a"'),
    "elements beyond int64": _shape(2**4, 2**60 + 2),
    "bytes beyond int64": _shape(2**2, 2**60 + 2),
    "dimension beyond int64": _shape(1, 2**63),
    "index ready number": post("/v2/repository/index", {"ready": 5}),
    "index ready text": post("/v2/repository/index", {"ready": "yes"}),
    "generate the same input twice": post("/v2/models/text/generate", '{"text_input":"a","text_input":"b"}'),
    "generate the same input nested": post(
        "/v2/models/text/generate", '{"text_input":"a","parameters":{"text_input":"b"}}'
    ),
    "generate the same input twice nested": post(
        "/v2/models/text/generate", '{"parameters":{"text_input":"a","text_input":"b"}}'
    ),
    "generate the same parameter twice": post(
        "/v2/models/text/generate", '{"text_input":"a","suffix":"!","suffix":"?"}'
    ),
    "generate its name in its text": post("/v2/models/text/generate", '{"text_input":"\\"text_input\\":\\"b\\""}'),
    "output twice of three": infer("add_sub", *(
        tensor(name, [1, 16], "INT32", [1] * 16) for name in ("INPUT0", "INPUT1")
    ), outputs=[{"name": "OUTPUT1"}, {"name": "OUTPUT0"}, {"name": "OUTPUT1"}]),
    "output twice with an id": infer("identity", ONE, outputs=[{"name": "OUTPUT0"}] * 2, id="me"),
    "health with a body": Call("GET", "/v2/health/live", b"x"),
    "metadata accepts gzip": Call("GET", "/v2/models/identity", headers=(("Accept-Encoding", "gzip"),)),
    "trailing slash": get("/v2/models/identity/"),
    "query": get("/v2/models/identity?a=b"),
}  # fmt: skip

WEIGHTS = (
    "gzip",
    "deflate",
    "gzip, deflate",
    "deflate, gzip",
    "gzip;q=0.5, deflate",
    "gzip;q=0, deflate;q=0",
    "identity, gzip",
    "gzip, identity",
    "*",
    "br",
    "br, gzip;q=0.1",
    "gzip;q=abc",
    "gzip;q=-1",
    "gzip;q=nan",
    "gzip;q=2, deflate;q=3",
    ";q=1",
    ",,gzip",
    " gzip",
    "GZIP",
)

CASES = [
    *(Case(f"protocol {name}", (call,)) for name, call in CALLS.items()),
    *(Case(f"accepts {weights!r}", (_body(PLAIN, Accept_Encoding=weights),)) for weights in WEIGHTS),
]

"""A bucket on loopback that speaks as S3, Google and Azure do as far as engines need it, and can fail as clones do.

The dialect is read from the request. Nothing here checks a signature.
"""

import http.server
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import md5
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from tests.agent.sites import web_server

CONDITIONS = ("If-None-Match", "x-goog-if-generation-match")


@dataclass
class Bucket:
    """A bucket's objects, by key below the bucket's name.

    `condition`: what is done with a put that should only create: `kept`, `ignored`, or `refused` with 501. `quota`:
    bytes that still go in. `refused` are answers by method, each (status, code). `troubles` are statuses for the next
    puts; `conflicts`: so many puts that should only create are refused as if another one were under way. `requests`
    is every request: method and path. A read of a key that begins with `blocked`, where that is not empty, waits
    until `released`.
    """

    name: str = "fleet"
    objects: dict[str, bytes] = field(default_factory=dict)
    blocks: dict[tuple[str, str], bytes] = field(default_factory=dict)
    condition: str = "kept"
    quota: int = 10**9
    full: tuple[int, str] = (507, "XMinioStorageFull")
    refused: dict[str, tuple[int, str]] = field(default_factory=dict)
    troubles: list[int] = field(default_factory=list)
    conflicts: int = 0
    lose_answers: bool = False
    blocked: str = ""
    released: threading.Event = field(default_factory=threading.Event)
    requests: list[tuple[str, str]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    url: str = ""


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers for a `Bucket`."""

    bucket: Bucket
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        body = self._body()
        bucket, method = self.bucket, self.command
        bucket.requests.append((method, self.path))
        _, name, *rest = [*unquote(parts.path).split("/", 2), ""]
        key = rest[0]
        if bucket.blocked and method == "GET" and key.startswith(bucket.blocked):
            bucket.released.wait()
            self.connection.settimeout(2)  # who waited may be gone, and then takes no answer
        with bucket.lock:
            if method in bucket.refused:
                self._say(*bucket.refused[method])
            elif name != bucket.name:
                self._say(404, "NoSuchBucket")
            elif method == "GET" and not key:
                self._list(query)
            else:
                getattr(self, f"_{method.lower()}")(key, query, body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815

    def _get(self, key: str, query: Mapping[str, str], body: bytes) -> None:
        result = self.bucket.objects.get(key)
        if result is None:
            self._say(404, "NoSuchKey")
            return
        requested = self.headers.get("Range") or self.headers.get("x-ms-range", "")
        if not requested:
            self._send(200, result, _headers(result))
            return
        first, _, last = requested.removeprefix("bytes=").partition("-")
        start, end = int(first), min(int(last) + 1, len(result))
        span = {"Content-Range": f"bytes {start}-{end - 1}/{len(result)}"}
        self._send(206, result[start:end], {**_headers(result), **span})

    _head = _get

    def _put(self, key: str, query: Mapping[str, str], body: bytes) -> None:
        bucket = self.bucket
        part = query.get("partNumber") or query.get("blockid")
        if bucket.troubles:
            self._say(bucket.troubles.pop(0), "SlowDown")
        elif query.get("comp") == "blocklist":
            names = [item.text or "" for item in ElementTree.fromstring(body)]
            self._store(key, b"".join(bucket.blocks.pop((key, name)) for name in names))
        elif len(body) > bucket.quota:
            self._say(*bucket.full)
        elif part:
            bucket.blocks[key, part] = body
            bucket.quota -= len(body)
            self._send(201 if "blockid" in query else 200, b"", _headers(body))
        elif any(name in self.headers for name in CONDITIONS) and self._is_refused(key):
            return
        else:
            bucket.quota -= len(body)
            self._store(key, body)

    def _is_refused(self, key: str) -> bool:
        if self.bucket.conflicts:
            self.bucket.conflicts -= 1
            self._say(409, "ConditionalRequestConflict")
            return True
        if self.bucket.condition == "refused":
            self._say(501, "NotImplemented")
            return True
        if self.bucket.condition == "kept" and key in self.bucket.objects:
            azure = "x-ms-version" in self.headers
            self._say(*((409, "BlobAlreadyExists") if azure else (412, "PreconditionFailed")))
            return True
        return False

    def _store(self, key: str, body: bytes) -> None:
        self.bucket.objects[key] = body
        if self.bucket.lose_answers and key.endswith("manifest.json"):
            self.bucket.lose_answers = False
            self.close_connection = True
            return
        azure = "x-ms-version" in self.headers
        self._send(201 if azure else 200, b"", _headers(body))

    def _post(self, key: str, query: Mapping[str, str], body: bytes) -> None:
        if "delete" in query:
            self._delete_many(body)
            return
        if query.get("comp") == "batch":
            self._delete_batch(body)
            return
        if "uploads" in query:
            self._send(200, b"<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>")
            return
        numbers = sorted((name for at, name in self.bucket.blocks if at == key), key=int)
        full = b"".join(self.bucket.blocks.pop((key, number)) for number in numbers)
        self.bucket.objects[key] = full
        etag = f'"{md5(full).hexdigest()}"'
        self._send(
            200, f"<CompleteMultipartUploadResult><ETag>{escape(etag)}</ETag></CompleteMultipartUploadResult>".encode()
        )

    def _delete(self, key: str, query: Mapping[str, str], body: bytes) -> None:
        if "uploadId" in query:
            for at in [block for block in self.bucket.blocks if block[0] == key]:
                del self.bucket.blocks[at]
        result = self.bucket.objects.pop(key, None)
        azure = "x-ms-version" in self.headers
        if result is None and azure:
            self._say(404, "BlobNotFound")
        else:
            self._send(202 if azure else 204, b"")

    def _delete_many(self, body: bytes) -> None:
        """Answer S3's DeleteObjects: refusals are in an answer of status 200."""
        keys = [item.text or "" for item in ElementTree.fromstring(body).iter() if item.tag.endswith("Key")]
        status, code = self.bucket.refused.get("DELETE", (0, ""))
        if not status:
            for key in keys:
                self.bucket.objects.pop(key, None)
        tag, why = ("Error", f"<Code>{code}</Code><Message>because</Message>") if status else ("Deleted", "")
        reported = "".join(f"<{tag}><Key>{escape(key)}</Key>{why}</{tag}>" for key in keys)
        self._send(200, f"<DeleteResult>{reported}</DeleteResult>".encode())

    def _delete_batch(self, body: bytes) -> None:
        """Answer Azure's batch: requests within the body, each answered within the answer's."""
        status, code = self.bucket.refused.get("DELETE", (0, ""))
        answers = []
        for number, line in enumerate(line for line in body.decode().splitlines() if line.startswith("DELETE ")):
            key = unquote(urlsplit(line.split(" ")[1]).path).split("/", 2)[2]
            result = None if status else self.bucket.objects.pop(key, None)
            reported = f"{status} Forbidden" if status else "202 Accepted" if result is not None else "404 Not Found"
            error = f"x-ms-error-code: {code or 'BlobNotFound'}\r\n" if result is None else ""
            answers.append(
                f"--batch\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\nHTTP/1.1 {reported}\r\n"
                f"{error}x-ms-request-id: 1\r\n\r\n"
            )
        text = "\r\n".join([*answers, "--batch--\r\n"])
        self._send(202, text.encode(), {"Content-Type": "multipart/mixed; boundary=batch"})

    def _list(self, query: Mapping[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        below = {key: body for key, body in sorted(self.bucket.objects.items()) if key.startswith(prefix)}
        folders = {
            prefix + key[len(prefix) :].split("/")[0] + "/" for key in below if delimiter and "/" in key[len(prefix) :]
        }
        files = {key: body for key, body in below.items() if not delimiter or "/" not in key[len(prefix) :]}
        write = _azure_list if query.get("comp") == "list" else _s3_list
        self._send(200, write(files, sorted(folders)).encode(), {"Content-Type": "application/xml"})

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        full = b""
        while size := int(self.rfile.readline(), 16):
            full += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return full

    def _say(self, status: int, code: str) -> None:
        self._send(status, f"<Error><Code>{code}</Code><Message>because</Message></Error>".encode())

    def _send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""


def _headers(body: bytes) -> dict[str, str]:
    etag = f'"{md5(body).hexdigest()}"'
    return {"ETag": etag, "Last-Modified": "Wed, 21 Oct 2015 07:28:00 GMT", "x-goog-generation": "1"}


def _s3_list(files: Mapping[str, bytes], folders: list[str]) -> str:
    contents = "".join(
        f"<Contents><Key>{escape(key)}</Key><Size>{len(body)}</Size><ETag>{escape(_headers(body)['ETag'])}</ETag>"
        "<LastModified>2015-10-21T07:28:00.000Z</LastModified></Contents>"
        for key, body in files.items()
    )
    common = "".join(f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in folders)
    return f"<?xml version='1.0'?><ListBucketResult>{contents}{common}</ListBucketResult>"


def _azure_list(files: Mapping[str, bytes], folders: list[str]) -> str:
    blobs = "".join(
        f"<Blob><Name>{escape(key)}</Name><Properties><Last-Modified>Wed, 21 Oct 2015 07:28:00 GMT</Last-Modified>"
        f"<Etag>{escape(_headers(body)['ETag'])}</Etag><Content-Length>{len(body)}</Content-Length>"
        "<BlobType>BlockBlob</BlobType><Content-Type>text/plain</Content-Type></Properties></Blob>"
        for key, body in files.items()
    )
    common = "".join(f"<BlobPrefix><Name>{escape(folder)}</Name></BlobPrefix>" for folder in folders)
    return f"<?xml version='1.0'?><EnumerationResults><Blobs>{blobs}{common}</Blobs><NextMarker/></EnumerationResults>"


@contextmanager
def serving(bucket: Bucket, host: str = "127.0.0.1") -> Iterator[Bucket]:
    """Serve the bucket at an address of this machine."""
    with web_server(type("BucketHandler", (Handler,), {"bucket": bucket}), host) as bucket.url:
        yield bucket

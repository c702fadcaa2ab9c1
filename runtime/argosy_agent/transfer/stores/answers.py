"""The meaning of a server's responses, and the way out."""

import http
import re
from collections.abc import Mapping
from dataclasses import dataclass

from argosy_agent.transfer.errors import MissingError, StorageError, TransientError, UnauthorizedError, shown

TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
SECRET = "the Secret of spec.storage.secretName"
RIGHTS = {
    "s3": f"{SECRET} (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) or the servers' service account needs s3:ListBucket "
    "and s3:GetObject there; AWS_SKIP_SIGNATURE=true reads a public bucket",
    "gs": f"{SECRET} (GOOGLE_APPLICATION_CREDENTIALS) or the servers' service account needs storage.objects.list and "
    "storage.objects.get there; GOOGLE_SKIP_SIGNATURE=true reads a public bucket",
    "az": f"{SECRET} (AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN, or AZURE_TENANT_ID, AZURE_CLIENT_ID and "
    "AZURE_CLIENT_SECRET) or the servers' service account needs the role Storage Blob Data Reader there; "
    "AZURE_SKIP_SIGNATURE=true reads a public container",
    "hf": f"{SECRET} needs HF_TOKEN with read access, and a gated model's terms must be accepted by its owner",
    "oci": f"{SECRET} needs .dockerconfigjson with credentials that may pull from this registry",
    "http": "write credentials as https://user:password@host/…, or let the server serve it",
}
RIGHTS["https"], RIGHTS["abfss"] = RIGHTS["http"], RIGHTS["az"]
CERTIFICATE = re.compile(r"certificate verify failed(: [\w ]*\w)?|InvalidCertificate\(\s*\w+|invalid peer certificate")
"""How Python's and Rust's TLS say that they do not trust a server."""
TRUST = (
    f"if its authority is your own, put the authority's certificate into {SECRET} as the key ca.crt, and "
    "the key SSL_CERT_FILE with the value /secrets/storage/ca.crt next to it"
)
MISSING = "correct spec.storageUri, or put the files there"


@dataclass(frozen=True, slots=True)
class Purpose:
    """The purpose of a request: the rights that it needs, by scheme, and what to do where nothing is there."""

    rights: Mapping[str, str]
    missing: str


READING = Purpose(RIGHTS, MISSING)


def answered(uri: str, status: int, reason: str = "", after: float = 0.0, purpose: Purpose = READING) -> StorageError:
    """Return the error for a server's answer `status` to a request for files of `uri`. `reason`: the server's words."""
    scheme = uri.partition(":")[0]
    words = f"{shown(uri)}: the server answered {status} {_phrase(status)}" + (f" ({reason})" if reason else "")
    if status in TRANSIENT or status >= 500:
        return TransientError(words, after)
    if status in (401, 403):
        kind = UnauthorizedError if status == 401 else StorageError
        return kind(f"{words}: {purpose.rights.get(scheme, 'it may not be read')}")
    if status in (404, 410):
        return MissingError(f"{words}: nothing is there; {purpose.missing}")
    return StorageError(words)


def unreached(uri: str, reason: str) -> StorageError:
    """Return the error for a connection that failed: what may pass, unless the server's certificate is not trusted."""
    if match := CERTIFICATE.search(reason):
        why = re.sub(r"\(?\s+", " ", match[0])
        return StorageError(f"{shown(uri)}: the server's certificate is not trusted ({why}): {TRUST}")
    return TransientError(f"{shown(uri)}: {reason}")


def nothing_there(uri: str) -> StorageError:
    """Return the error for a place without files."""
    return MissingError(f"{shown(uri)}: nothing is there; {MISSING}")


def _phrase(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return ""

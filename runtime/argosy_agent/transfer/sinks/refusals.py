"""What a place that takes nothing says, and which right is missing to whom."""

import errno
import os
from urllib.parse import urlsplit

from argosy_agent.transfer.errors import FullError, StorageError, is_full, reason
from argosy_agent.transfer.stores.answers import SECRET, Purpose

FIELD = "spec.storage.engineCache.storageUri"
WHO = f"{SECRET} or the build's service account (spec.storage.serviceAccountName)"
RIGHTS = {
    "s3": f"{WHO} needs s3:ListBucket, s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload there",
    "gs": f"{WHO} needs storage.objects.list, .get, .create and .delete there (the role Storage Object User)",
    "az": f"{WHO} needs the role Storage Blob Data Contributor there",
}
RIGHTS["abfss"] = RIGHTS["az"]
WRITING = Purpose(
    {scheme: f"{words}: engines are written to {FIELD}" for scheme, words in RIGHTS.items()},
    f"create the bucket, or correct {FIELD}",
)
NOT_ALLOWED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def refused_here(uri: str, error: OSError, done: str) -> StorageError:
    """Return the error for a file at `uri` of a folder that could not be `done`: read, written, removed."""
    words = f"{uri} cannot be {done}: {reason(error)}"
    if is_full(error):
        return FullError(f"{words}: {full_advice(uri)}")
    if error.errno in NOT_ALLOWED:
        return StorageError(f"{words}: {_allow(uri)}")
    return StorageError(f"{words}; look at {FIELD}")


def full_advice(uri: str) -> str:
    """Return what to do where no more goes in."""
    what = {"pvc": "the claim", "file": "the disk", "": "the disk"}.get(urlsplit(uri).scheme, "the bucket's quota")
    return f"make {what} of {FIELD} larger, or remove engines that nobody uses: argosy engines gc"


def _allow(uri: str) -> str:
    if urlsplit(uri).scheme == "pvc":
        return f"the claim of {FIELD} must be mounted writable, and user {os.getuid()} must own the folder or its group"
    return f"user {os.getuid()} must be allowed to write into the folder of {FIELD}"

"""A storageUri becomes a verified folder on this disk: fetching, resuming, checking, and a cache of bounded size.

A copy has a key: of the URI and its digest, and for `file:` and `pvc:` also of the names, sizes and times below it,
so a folder that changes becomes another copy and what is served keeps its own. A copy is written beside the cache's
folders and renamed when it is whole and its digest is right; what stands under its key is never written again. So
what is behind a URI without digest, an S3 prefix or a tag, is fetched once: a changed model gets a new version and
a new URI, or a digest.

One module per kind of storage (`local`, `objects`, `web`, `hub`, `registry`), one for each step of a fetch
(`flow`, `spans`, `journal`, `download`, `archives`), one for each part of the folder (`partials`, `cache`, `lru`,
`owners`). Nothing here knows what a model is, or a server.
"""

from .errors import DigestMismatchError, StorageError, StorageStoppedError, UnusableError, shown
from .flow import Progress, Retry
from .storage import Storage

__all__ = [
    "Storage",
    "StorageError",
    "DigestMismatchError",
    "StorageStoppedError",
    "UnusableError",
    "Progress",
    "Retry",
    "shown",
]

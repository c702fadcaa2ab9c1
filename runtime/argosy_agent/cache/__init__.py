"""The model cache: complete, verified copies of what storageUris mean, in one folder of bounded size.

A copy has a key: of the URI, its digest or else the model's version, and the credentials; for `file:` and `pvc:` of the
URI, its digest and the names, sizes and times below it, so a folder that changes becomes another copy and what is
served keeps its own. A copy is written next to the cache's folders (`partials`) and renamed when it is complete and its
digest is right; a copy is never changed. So the files of a URI without digest, an S3 prefix or a tag, are fetched once
for each version: a changed model gets a new version, or a digest.

`storage` fetches into it, `entries` keeps it within its bound by `lru`, and several agents may share it (`owners`).
"""

"""The model cache: complete, verified copies of the files behind storageUris, in one folder of bounded size.

The key of a copy is made of the URI, its digest or else the model's version, and the credentials. For `file:` and
`pvc:` it is made of the URI, its digest and the names, sizes and times of the files, so a changed folder gets a new
copy and served models keep theirs. A copy is written next to the cache's folders (`partials`), renamed once it is
complete and its digest matches, and never changed afterwards. So a URI without a digest, such as an S3 prefix or a tag,
is fetched once per version: a changed model needs a new version, or a digest.

`storage` fetches files, `entries` evicts the least recently used copies, and several agents may share it (`owners`).
"""

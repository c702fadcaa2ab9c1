"""One module a kind of storage: this machine (`local`), object stores (`objects`, opened by `buckets`), web servers
(`web`), Hugging Face (`hub`), OCI registries (`oci`).

`source` is what each is, `schemes` which reads which URI, `settings` by whose credentials, `answers` what a server's
refusal means.
"""

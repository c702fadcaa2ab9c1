"""Making one server's models what they should be: the loop, and what is known of the server.

`sidecar`: the loop beside a server in a Pod; `agent`: one round of it, which `argosy up` runs as well; `ledger`: what
is known (it asks nobody); `control`: the server's public protocol; `observation`: when it is asked what; `loading`,
`unloading`, `reasons`: a step each; `storage/`: keys and files, in threads; `record`: what outlives the process;
`supervisor`: the parent that starts it again.
"""

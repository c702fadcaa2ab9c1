"""The agent: it brings models to a server, the bundled one or NVIDIA's Triton, through the public protocol alone.

It runs next to a server in a Pod (`python -m argosy_agent`), and inside `argosy up`. Its packages, each importing only
those behind it: `sync` reconciles a server with what is desired, `sources` reads that and takes the report; `publisher`
writes states; `folder` is the server's repository, `cache` the copies of model files, `transfer` fetches them from
storage; `contract` is the language between the operator and the agent.
"""

"""The activator: it receives requests for a model while no server has it, reports them to the operator, and forwards
them once a server has the model ready. `python -m argosy_agent.activator` runs it, a Pod for each pool that may scale
to zero.

`flags`, `running`: the command line, and the life of the process. `pending`: the requests that wait, in a bounded
`fair_queue`; `members`: the models and their servers; `metrics`: counts. `http/`, `grpc/`: the two protocols, which
read no more of a request than its model; `request_kind`: how requests are handled. It imports nothing of the server.
"""

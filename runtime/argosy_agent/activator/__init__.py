"""What requests for a model reach while no server has it: they are held, said to the operator, and passed on once a
server has the model ready. `python -m argosy_agent.activator` runs it, a Pod for each pool that may go to zero.

`flags`, `running`: the command line, and how a process of it begins and ends. `holding`: who waits for what, within
bounds; `servers`: which of several is asked; `metrics`: what became of requests. `http/`, `grpc/`: the two protocols,
which know of a request only what says for which model it is. It imports nothing of the server.
"""

"""gRPC: calls are relayed as the bytes of their messages, so that no version of the protocol has to be known here.

`messages`, pure: the model that a message names. `methods`: the kind of each method. `calls`: a call from its first
message to its status. `listener`: the port. `channels`: the connections to servers.
"""

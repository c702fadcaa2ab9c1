"""gRPC: calls pass as the bytes of their messages, so that no version of the protocol has to be known here.

`messages`, pure: the model that a message names. `methods`: what each method asks for. `calls`: one call from its
first message to its status. `listener`: the port, and the channels to servers.
"""

"""HTTP/1.1, one request for each connection: so that who asks again comes by the Service, to a server by then.

`head` and `paths` are pure: what stands at the beginning of a message, and what a path asks for. `answers`: what the
activator says itself. `connection`: one connection from its request to its end; `listener`: the port.
"""

"""HTTP/1.1, one request per connection: a client's next request goes through the Service, to a server by then.

`head` and `paths` are pure: the head of a message, and the kind of a path. `answers`: the activator's own answers.
`connection`: a connection from its request to its end; `listener`: the port.
"""

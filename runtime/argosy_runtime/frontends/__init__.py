"""Thin shells between sockets and the data plane: HTTP, gRPC, metrics.

A front end listens, decodes with `protocol`, calls the `DataPlane` of `port.py`, encodes, and maps an
`ErrorKind` to
its own status in one table. Nothing here knows how a model is scheduled or executed.
"""

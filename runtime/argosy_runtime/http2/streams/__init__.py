"""The streams of one connection: `stream` sends a response, `table` holds the open streams, `inbound` and `output` keep
the windows and the limits in either direction, `shutdown` ends the connection. Pure: no I/O, no clock.
"""

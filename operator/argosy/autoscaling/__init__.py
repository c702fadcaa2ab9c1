"""Decisions on replicas, instances and batching windows, made from measurements. Pure: time is an argument, and the
state between two decisions is a value that is passed in and returned.

Values that every decision creates are msgspec structs; values created once for a spec or a reading are dataclasses.
"""

"""Roots to write files to: folders of this machine and mounted claims (`folder`), buckets of objects (`bucket`).

`sink` is their interface, with the errors of one that cannot be written to; `opening` has the sink of a URI. What is
written, and in which order, is not decided here.
"""

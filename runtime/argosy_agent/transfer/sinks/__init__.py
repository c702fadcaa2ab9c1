"""Roots to write files to: folders of this machine and mounted claims (`folder`), buckets of objects (`bucket`).

`sink` is what each can do, `opening` which is meant by a URI, `refusals` what a place that takes nothing says, and who
has to give which right. What is written, and in which order, is not decided here.
"""

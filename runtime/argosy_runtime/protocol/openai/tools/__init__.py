"""Calls of tools.

`use`: what a request lets its model call; `calls` and `scanning`: the calls in a model's text; `answers`: answers with
them.
"""

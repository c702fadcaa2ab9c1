"""The GPUs that suit a transformer's shape: what it takes of each, and which split fits them.

Each rule has a check, the numbers, and what to do; `rules` is the table of them.
"""

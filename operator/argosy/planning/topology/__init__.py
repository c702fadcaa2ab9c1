"""The split of a transformer over GPUs that suits its shape, and the memory that it uses on each of them.

Each rule has a check, a message with numbers, and advice; `rules` has the table of them.
"""

"""The last plan, used again: where few groups differ from it, these are planned next to all that it keeps.

The result is the plan that is made from the facts alone: none of it depends on whether there was a last one.
"""

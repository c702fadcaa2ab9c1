"""Sequence batching: requests of one sequence run one after the other, on the instance where the sequence began.

A sequence has a slot of an instance, or waits in the backlog until one is free. `direct`: the slot is the request's
position in the batch. `oldest`: the slot only limits how many sequences take part in an instance's dynamic batching.
"""

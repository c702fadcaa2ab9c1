"""The parts of a decision other than replicas: `instances` and the batching window, which change in place; reductions
after `out_of_memory`; and `ejection` of servers with long queues. These modules do not import each other.
"""

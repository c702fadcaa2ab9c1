"""What a decision sets apart from replicas: `instances` and the batching window in place, smaller batches and fewer
instances after `out_of_memory`, and the `ejection` of servers with long queues. None knows another.
"""

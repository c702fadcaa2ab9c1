"""How requests become batches: dynamic batching with its queues, and sequences."""

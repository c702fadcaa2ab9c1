"""Dynamic batching: which waiting requests share a batch, by Triton's rules and by a rule of the model's own."""

"""What decides on a version's batches besides its configuration: a strategy of its own, and Triton's debugging aids."""

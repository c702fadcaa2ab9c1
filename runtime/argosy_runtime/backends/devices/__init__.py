"""Memory of devices: which GPUs a model has, copies of a batch to them and back, arrays that are there already."""

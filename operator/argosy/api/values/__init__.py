"""What the fields of several kinds are made of: quantities, versions, tensors, storage, names, metadata."""

"""Types of fields that several kinds share: quantities, versions, tensors, storage, names, metadata."""

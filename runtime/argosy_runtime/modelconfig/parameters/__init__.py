"""Parameters of a configuration by which Argosy declares what Triton has no fields for."""

"""What a plan changes, why a model is where it is, and what would give the others a place. Pure."""

"""What results say of a model's variants: their crossovers, for the model's manifest."""

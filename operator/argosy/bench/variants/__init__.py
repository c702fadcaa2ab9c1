"""What results say of a model's variants: their crossovers for the manifest, and which one suits a traffic."""

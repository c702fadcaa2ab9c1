"""Rules between fields of a model's spec."""

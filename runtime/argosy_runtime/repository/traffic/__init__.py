"""Traffic of a model's versions: how it is declared, and the stable version with its shadow."""

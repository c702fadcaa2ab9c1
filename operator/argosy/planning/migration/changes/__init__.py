"""How a new form of a model takes the place of the old one: beside it, or after it."""

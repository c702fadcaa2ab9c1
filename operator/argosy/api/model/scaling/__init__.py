"""How many replicas there may be, and how they follow what is measured."""

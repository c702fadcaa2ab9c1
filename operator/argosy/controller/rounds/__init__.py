"""A round of one pool: what it starts from, what it decides with other pools' GPUs in view, and what it writes."""

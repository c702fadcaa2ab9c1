"""A round of one pool: its inputs, its decision with regard to other pools' GPUs, and its writes."""

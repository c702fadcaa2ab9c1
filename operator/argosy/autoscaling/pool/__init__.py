"""A pool's members: policies from specs, grants of the last plan, rounds of decisions, allocations in specs."""

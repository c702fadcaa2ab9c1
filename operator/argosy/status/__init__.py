"""The plan held against what servers report: conditions and statuses of the three kinds. Nothing here decides."""

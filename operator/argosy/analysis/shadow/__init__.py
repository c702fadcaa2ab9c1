"""What mirrored requests say of a candidate: as evidence of its analysis, and in its status."""

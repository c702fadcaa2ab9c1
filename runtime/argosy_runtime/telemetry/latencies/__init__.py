"""Durations as Triton reports them: counts with sums, summaries, and those of each response of a stream."""

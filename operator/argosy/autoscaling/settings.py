"""The constants that shape decisions, each with its meaning and unit. Those of reading metrics are in
`metrics/windows.py`, the thresholds of bottlenecks in `bottlenecks/`, numerical limits of a formula next to it, and the
values that a resource may set in `policy.py`.
"""

# What is measured.
STALE_S = 60.0
"""Seconds after which signals are stale. A gap of that length begins the stabilization window again."""

# Forecast.
MEMORY_S = 180.0
"""Seconds of arrivals that the level is estimated from, at most."""
CONFIDENCE = 3.0
"""Standard errors beyond which a difference counts as significant: 99.7 % for a normal distribution. Also the margin
above the expected load that new replicas are to suffice for.
"""
GROWTH_S = 20.0
"""Seconds of each of the four successive means from which growth is estimated."""
MOST_GROWTH = 1.0
"""Largest growth of the load that is expected until a replica is ready, as a share of the present level."""

# Capacity.
EVIDENCE = 500.0
"""Executions (or requests) that an estimate is averaged over; older ones fade."""
WEIGHT = 20.0
"""Largest weight of one batch size in the fit, in executions. Also the fewest requests that a mean is taken of."""
ROW_SHARE = 0.05
"""Assumed share of a one-row execution that its row costs, before batches of several sizes were measured. It is 1 once
a latency target was missed without a queue.
"""
VARIATION = 0.05
"""Relative standard deviation of batch sizes from which on measurements outweigh that share."""
SATURATED = 0.95
"""Share of their time in use from which on servers count as equal, since all of them execute full batches."""
SAME = 0.1
"""Relative difference up to which two values count as equal, so that noise changes nothing."""
PLANNED_OVERDUE = 0.03
"""Share of the requests allowed beyond a percentile's target that a plan uses; the rest is a reserve for errors."""
WORTH = 1.25
"""Least ratio of the capacities of a setting and the next cheaper one for it to be used."""
SLOTS_S = 1800.0
"""Time constant, in seconds, with which the observed maximum of concurrent sequences of an engine decays."""
MOST_SLOTS = 65536.0
"""Largest number of concurrent sequences that is assumed of an engine, whatever its metrics report."""
STEP_WEIGHT = 0.1
"""Weight of a step of an engine as evidence, relative to an execution, since there are many in a second."""
LEAST_CACHE = 0.05
"""Least share of the KV cache in use from which the number of sequences that fit is estimated."""

# Recommendation.
DRAIN_S = 5.0
"""Seconds in which an overdue queue should drain."""
MOST_CACHE = 0.9
"""Target share of the KV cache in use while requests wait in the engine."""
MOST_REPLICAS = 1e9
"""Largest number of replicas of a recommendation, since integers of a status have 64 bits."""
LEAST_REMAINING = 0.9
"""The least share of the replicas that remain at once where a latency is below half of its target."""
MOST_FACTOR = 4.0
"""Largest factor by which a latency, an error rate or a full cache multiplies the replicas at once."""

# Stabilization.
BUCKETS = 12
"""Number of parts of a stabilization window; the largest recommendation of each is stored."""
READMITTED = 0.4
"""An ejected server is sent requests again once its queue is below this share of the ejection limit."""
WINDOW_SHARE = 4
"""The longest batching window is the smallest latency target divided by this."""

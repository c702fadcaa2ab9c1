"""Every constant of autoscaling, with its meaning and unit. What a resource may say instead is in `policy.py`."""

# What is measured.
STALE_S = 60.0
"""Seconds after which a measurement says nothing of now; without a new one for so long the window begins again."""

# Forecast.
MEMORY_S = 180.0
"""Seconds of arrivals that the level is estimated from, at most."""
CONFIDENCE = 3.0
"""Standard errors beyond which a difference is no chance: 99.7 % for a normal distribution. Also the dead band of a
level within which replicas neither come nor go.
"""
GROWTH_S = 20.0
"""Seconds of each of the four means whose rises are taken for growth."""
MOST_GROWTH = 1.0
"""The most that load is expected to grow until a replica is ready, as a share of the present level."""

# Capacity.
EVIDENCE = 500.0
"""Executions (or requests) that an estimate remembers: older ones fade."""
WEIGHT = 20.0
"""Executions of one size of batch that count in the fit: more add nothing. Also the least requests of a mean."""
ROW_SHARE = 0.05
"""The share of a one-row execution that its row costs, before batches of several sizes were measured. All of it once a
latency target was missed without a queue.
"""
SPREAD = 0.05
"""The relative standard deviation of batch sizes from which on measurements outweigh that share."""
SATURATED = 0.95
"""The share of their time in use from which on servers are alike, as all of them execute full batches."""
SAME = 0.1
"""The share by which an estimate may differ and still count as the same, so that nothing changes for noise."""
PLANNED_OVERDUE = 0.03
"""Of the requests that a percentile lets be late, the share that is planned for: the rest is for what no plan knows."""
WORTH = 1.25
"""How many times as much a dearer setting of a replica must hold to be of use."""
SLOTS_S = 1800.0
"""Seconds after which the most sequences that ran at once in an engine count for a third."""
MOST_SLOTS = 65536.0
"""The most sequences that an engine is taken to run at once, whatever its metrics say."""
STEP_WEIGHT = 0.1
"""How much a step of an engine counts as evidence, compared to an execution: many follow each other in a second."""
LEAST_CACHE = 0.05
"""The share of the KV cache in use from which on it tells how many sequences fit."""

# Recommendation.
DRAIN_S = 5.0
"""Seconds in which a queue that is too long is to be worked off."""
MOST_CACHE = 0.9
"""The share of the KV cache that may be in use while requests wait in the engine."""
MOST_REPLICAS = 1e9
"""The most replicas that anything asks for, however large its number; a status has integers of 64 bits."""
MOST_FACTOR = 4.0
"""The most times as many replicas that a latency, an error rate or a full cache asks for at once."""

# Stabilization.
BUCKETS = 12
"""Parts of a stabilization window, of each of which the largest recommendation is kept."""
READMITTED = 0.4
"""The share of the queue for which a server is ejected, below which it is sent requests again."""
WINDOW_SHARE = 4
"""A batch waits for more requests no longer than this part of the smallest latency target."""

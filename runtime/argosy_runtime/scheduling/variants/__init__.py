"""The choice among the variants of a routed model, as state machines: regimes by concurrency, measured curves."""

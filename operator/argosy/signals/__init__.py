"""Who is asked what was measured: Prometheus, or the servers themselves. The only importer of httpx and of
prometheus-api-client among what reads metrics. Nothing here decides, and no arithmetic lives here: that is
`autoscaling/metrics`.
"""

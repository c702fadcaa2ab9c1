"""What servers measured, over a window of time: values that scaling and bottlenecks are decided from, and the
arithmetic that makes them of counters and histograms. Pure: who asks Prometheus or the servers is `argosy.signals`.
"""

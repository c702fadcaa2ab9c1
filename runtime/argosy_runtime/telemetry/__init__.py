"""A server's telemetry: statistics, metrics, logs.

Counting happens on the event loop and costs a request a few additions; text is made only when it is scraped.
"""

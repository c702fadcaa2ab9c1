"""What a server tells about itself: statistics, metrics, logs.

Counting happens on the event loop and costs a few additions to a request; text is made only when somebody asks.
"""

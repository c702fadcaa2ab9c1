"""The controlled load test of `argosy bench`: matched work on endpoints that speak OpenAI's API, in one run.

What is sent, when, and what follows from the answers is pure; `load/` sends it and reads the clock. Times are seconds.
"""

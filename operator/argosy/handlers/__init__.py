"""The operator's process: handlers that validate, delegate and report. The only importer of kopf.

What may live here: kopf handlers, the controller that turns events into reconciles, the process's health and metrics.
"""

"""The plan on this machine: processes for Pods, folders for ConfigMaps.

This package may start processes, open sockets, read the clock and touch files. What should run is decided in
`argosy.reconcile`; here it is only made so. One idea per module; `supervisor` holds the loop.
"""

"""The plan on this machine: processes in place of Pods, folders in place of ConfigMaps.

This package may start processes, open sockets, read the clock and access files. `argosy.reconcile` decides what should
run; `supervisor` has the loop that applies it.
"""

"""Bottlenecks of requests: rules with thresholds, evidence in words, and advice. Pure.

`subjects` joins resources with measurements, `measures` computes numbers of them, `rules` compares these with
thresholds, and `diagnose` decides what a status reports. Why a replica fits nowhere is in `planning/packing/fit`.
"""

"""Engines built on this machine: the plan's builds as processes, one at a time, each with a folder of its own.

`command`: what a builder is started with. `inputs`: whether the files that it read are still the same. `build`: one
build over its tries. `runner`: which of them runs. What is to be built is decided elsewhere.
"""

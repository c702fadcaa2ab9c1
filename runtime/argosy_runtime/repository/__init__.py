"""Model repositories: what lies in them, and the life of each model from its folder to serving and back.

`layout` and `watch` read folders; `preparing` turns a folder into a complete configuration; `served` is one version in
service; `registry` keeps all of them and swaps versions without a gap.
"""

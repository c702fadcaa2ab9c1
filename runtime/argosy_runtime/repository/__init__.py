"""Model repositories: what lies in them, and the life of each model from its folder to serving and back.

`folders` reads them; `preparing` turns a folder into a complete configuration; `serving` is one version in service;
`lifecycle` loads and unloads, and swaps versions without a gap; `registry` has all models for the rest of the server.
"""

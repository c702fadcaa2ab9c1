"""Engines: which are requested, the state of their builds, which of these run now, and which engine each model uses.

What a build is requested and reports is `argosy_agent.contract.builds`; how it is done is of no concern here.
"""

"""Engines: which are asked for, what is known of their builds, which of these run now, and who serves which engine.

What a build is asked and says is `argosy_agent.contract.builds`; how it is done is of no concern here.
"""

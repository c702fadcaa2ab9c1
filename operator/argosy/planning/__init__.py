"""Pure decisions: facts (a frozen snapshot) become a plan.

No Kubernetes client, no clock, no I/O may live here. What is known comes in as `facts`, what is decided goes
out as `plan`; each policy has a module of its own.
"""

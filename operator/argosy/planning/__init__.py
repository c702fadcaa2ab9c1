"""Pure decisions: facts (a frozen snapshot) become a plan.

No Kubernetes client, no clock, no I/O may live here. `facts` has the inputs, `plan` the results; each policy has a
module of its own.
"""

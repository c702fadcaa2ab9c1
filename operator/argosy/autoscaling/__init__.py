"""How many replicas and instances there should be, and how long batches wait, from what was measured. Pure; time is an
argument, and what has to be remembered between two decisions is a value that is handed in and given back.
What every decision makes again is a struct of msgspec, what is made once of a spec or a reading a dataclass.
"""

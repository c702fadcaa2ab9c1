"""How many replicas are wanted: what comes, what a replica may be set to and then holds, what each target asks for."""

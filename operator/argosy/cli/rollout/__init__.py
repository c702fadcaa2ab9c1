"""`argosy rollout`: rollouts of models and ensembles, in a cluster or under `argosy up`.

`member`: a resource as its document has it. `progress`: how far its rollout is. `description`: the tables. `requests`:
the annotation of each command. Pure are all of these; `targets/` reach a cluster or a state folder.
"""

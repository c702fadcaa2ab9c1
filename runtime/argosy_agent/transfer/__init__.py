"""Files from where they are stored to a folder of this disk: in parts, resumed, checked, unpacked.

`stores/`: one module a kind of storage. `download` brings what a store lists, by `journal` and `spans` from where an
earlier try ended; `flow` counts, tries again and stops; `archives` unpacks. Nothing here knows what a model is.
"""

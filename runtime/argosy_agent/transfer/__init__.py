"""Files from where they are stored to a folder of this disk: in parts, resumed, checked, unpacked; and the way back.

`stores/`: one module a kind of storage. `download` brings what a store lists, by `journal` and `spans` from where an
earlier try ended; `flow` counts, tries again and stops; `archives` unpacks. `sinks/`: places that can be
written to. Nothing here knows what a model is.
"""

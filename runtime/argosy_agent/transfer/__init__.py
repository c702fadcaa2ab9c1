"""Transfers files from storage to a local folder (in parts, resumed, verified, unpacked), and back.

`stores/`: one module for each kind of storage. `download` fetches the files that a store lists, and resumes an earlier
attempt by `journal` and `spans`; `flow` counts, retries and stops; `archives` unpacks. `sinks/`: targets that files are
written to. Nothing here depends on models.
"""

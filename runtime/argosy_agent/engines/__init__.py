"""The engine cache: engines are published so that no reader ever sees half of one, looked up, fetched, removed.

    <store>/<key>/manifest.json          what the engine is; written last, and only where there is none
    <store>/<key>/<attempt>/<files>      its files; a second writer removes its own
    <store>/<key>/phases/<phase>/…       the same once more, for the output of a finished phase of its build
    <store>/<key>/accuracy/<id>.json     accuracy that was measured later, for the same engine
    <store>/<key>/requests/<name>.json   the builds that requested it

`manifest` is the text, `artifacts` writes and reads one artifact, `store` all of them; `inventory` lists the contents,
from the names of the files, `garbage` selects what may go. `argosy_agent.transfer` carries the files; nothing here
knows how an engine is built.
"""

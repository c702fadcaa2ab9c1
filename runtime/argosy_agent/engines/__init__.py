"""The engine cache: publishes engines atomically, looks them up, fetches and removes them.

    <store>/<key>/manifest.json          describes the engine; written last, and only if there is none
    <store>/<key>/<attempt>/<files>      its files; a second writer removes its own
    <store>/<key>/phases/<phase>/…       the same layout, for the output of a finished phase of its build
    <store>/<key>/accuracy/<id>.json     accuracy of the same engine, measured later
    <store>/<key>/requests/<name>.json   the builds that requested it

`manifest` is the text, `artifacts` writes and reads one artifact, `store` all of them; `inventory` lists the contents,
from the names of the files, `garbage` selects removable files. `argosy_agent.transfer` copies the files; nothing here
depends on how an engine is built.
"""

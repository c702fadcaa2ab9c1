"""Built engines where they are kept: written so that nobody ever sees half of one, found again, fetched, removed.

    <store>/<key>/manifest.json          what the engine is; written last, and only where there is none
    <store>/<key>/<attempt>/<files>      its files; who comes second removes his own
    <store>/<key>/phases/<phase>/…       the same once more, for what a finished phase of its build left
    <store>/<key>/accuracy/<id>.json     accuracy that was measured later, for the same engine
    <store>/<key>/requests/<name>.json   the builds that asked for it

`manifest` is the text, `artifacts` how one is written and found, `store` all of them; `inventory` says what there is,
by the names of the files, `garbage` what of it may go. `argosy_agent.transfer` carries the files; nothing here knows
how an engine is built.
"""

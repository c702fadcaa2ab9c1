"""Where documents come from and go to: files (`files`) or ConfigMaps (`configmaps`, over `kubernetes_api`).

Each has a source of desired repositories and a sink for the state, as `exchange.ports` asks for.
"""

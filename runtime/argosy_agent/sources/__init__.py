"""Sources and sinks of documents: files (`files`) or ConfigMaps (`configmaps`, over `kubernetes_api`).

Each has a `DesiredSource` and a `StateSink`.
"""

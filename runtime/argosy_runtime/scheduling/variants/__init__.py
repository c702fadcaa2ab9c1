"""The choice among the variants of a routed model by weights, and the crossovers that its traffic shows.

The choice by requests in flight is `argosy_common.regimes`.
"""

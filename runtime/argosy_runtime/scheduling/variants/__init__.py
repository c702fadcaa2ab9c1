"""The choice among the variants of a routed model by weights; the choice by concurrency is `argosy_common.regimes`."""

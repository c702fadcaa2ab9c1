"""One reading of a candidate and its stable version."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from argosy.analysis.pool_analysis import AnalysisSubject
from argosy.analysis.queries import QueryResults, query_key
from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.autoscaling.metrics.version_counts import VersionSignals


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of a subject at a time: what its `versions` counted since the reading before, and the values of
    its queries, by their names, or why they have none. `error`: why not all servers could be read.
    """

    at: datetime
    versions: Mapping[int, VersionSignals] = field(default_factory=dict)
    queries: Mapping[str, float] = field(default_factory=dict)
    query_errors: Mapping[str, str] = field(default_factory=dict)
    error: str = ""

    @classmethod
    def of(cls, subject: AnalysisSubject, signals: PoolSignals, now: datetime) -> "Reading":
        """Return a subject's part of a reading of its pool."""
        revisions = (subject.state.stable, subject.state.candidate)
        proven = {revision.version for revision in revisions if revision is not None}
        versions = signals.versions.get(subject.name, {})
        results = QueryResults.of(subject.name, subject.queries, signals)
        return cls(
            now,
            {version: counts for version, counts in versions.items() if version in proven},
            results.values,
            results.errors,
            signals.error,
        )

    def signals(self, name: str) -> PoolSignals:
        """Return the reading as one of a pool whose only member has this name."""
        return PoolSignals(
            versions={name: self.versions},
            queries={(name, query_key(query)): value for query, value in self.queries.items()},
            query_errors={(name, query_key(query)): error for query, error in self.query_errors.items()},
            error=self.error,
        )

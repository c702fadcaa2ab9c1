"""What came of a soak's requests."""

from dataclasses import dataclass

from tritonclient.utils import InferenceServerException


@dataclass
class Tally:
    """Counts. An answer is lost where none came in time, or where the connection ended instead."""

    requests: int = 0
    loads: int = 0
    crashes: int = 0
    cancellations: int = 0
    streams: int = 0
    sequences: int = 0
    regions: int = 0
    wrong_answers: int = 0
    lost_answers: int = 0
    failed_answers: int = 0
    """Errors of models that never fail."""

    def judge(self, right: bool) -> None:
        """Count an answer."""
        self.requests += 1
        self.wrong_answers += not right

    def fail(self, model: str, error: InferenceServerException, may_fail: bool) -> None:
        """Count an error instead of an answer. The server's own name the model."""
        self.requests += 1
        if f"'{model}" not in str(error):
            self.lost_answers += 1
        elif not may_fail:
            self.failed_answers += 1

"""Messages of failed builds: they begin with the failure's own words, and end with the way out."""

from collections.abc import Mapping
from typing import Final

from argosy.planning.builds.build import ObservedBuild
from argosy_agent.contract.builds import BuildFailure

_AGAIN = "then delete the build's report to try again"
_SECRET = "the builds' Secret (the pool's spec.builds.secretName, else spec.storage.secretName)"
WAYS_OUT: Final[Mapping[BuildFailure, str]] = {
    BuildFailure.INVALID_OPTIONS: "Correct spec.engine.options",
    BuildFailure.MODEL_UNAVAILABLE: f"Check spec.storageUri and {_SECRET}, {_AGAIN}",
    BuildFailure.MODEL_INVALID: "Put whole files of spec.modelFormat at spec.storageUri, as a new version",
    BuildFailure.UNSUPPORTED_MODEL: "Choose another spec.engine.builder or precision, or leave spec.engine out",
    BuildFailure.CALIBRATION_MISSING: "Set spec.engine.calibration.dataUri",
    BuildFailure.CALIBRATION_INVALID: "Correct the data at spec.engine.calibration.dataUri: tensors as in spec.inputs",
    BuildFailure.BUILDER_MISSING: "Set spec.engine.image to an image that has this builder",
    BuildFailure.OUT_OF_MEMORY: "Raise spec.engine.memory",
    BuildFailure.OUT_OF_GPU_MEMORY: "Lower the batch sizes or lengths in the spec, or raise spec.parallelism.tensor",
    BuildFailure.DISK_FULL: f"Free disk space on the node, {_AGAIN}",
    BuildFailure.DEADLINE_EXCEEDED: "Raise spec.engine.timeout; the next try continues after the last finished phase",
    BuildFailure.CRASHED: "Look into the log of the build's Pod; another spec.engine.image or option may help",
    BuildFailure.IMAGE_UNAVAILABLE: "Correct spec.engine.image, or the credentials with which the node pulls it",
    BuildFailure.ENGINE_DIFFERS: "Ask for what the builder gives, or set spec.engine.image to another release of it",
    BuildFailure.ACCURACY_DATA_INVALID: "Correct the data at spec.engine.accuracy.dataUri, or the script",
    BuildFailure.ACCURACY_TOO_LOW: "Choose a finer spec.engine.precision, more calibration data, or another bound in "
    "spec.engine.accuracy",
    BuildFailure.STORE_UNAVAILABLE: f"Check the pool's spec.storage.engineCache and {_SECRET}, {_AGAIN}",
    BuildFailure.STORE_FULL: f"Free space at the pool's spec.storage.engineCache (argosy engines gc), {_AGAIN}",
    BuildFailure.BUILD_FAILED: f"Look into the log of the build's Pod, {_AGAIN}",
}
"""What to do about each failure."""


def failure_of(build: ObservedBuild) -> BuildFailure:
    """Return why a build that failed did: its own word, or else what its Job tells."""
    reported = build.report.failure if build.report is not None else None
    return reported or build.failure or BuildFailure.BUILD_FAILED


def failure_message(build: ObservedBuild) -> str:
    """Return the failure as `OutOfMemory: <what happened>. <what to do>.`"""
    failure = failure_of(build)
    reported = (build.report.message if build.report is not None else "") or build.error
    return (
        ". ".join(part.strip(" .") for part in (f"{failure}: {reported}" if reported else failure, WAYS_OUT[failure]))
        + "."
    )

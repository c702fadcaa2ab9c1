"""The termination of a server: it answers until no new request has arrived for a while, and only then ends.

A deleted Pod is no longer an endpoint, but clients learn of that with a delay, which is long on a busy node. The
bundled server waits by itself until it is idle. NVIDIA's stops listening on SIGTERM, so a preStop hook watches its
request counters first.
"""

from typing import Any

from argosy.api.servingpool import RuntimeName
from argosy.render.workloads.services import METRICS_PORT

DRAIN_IDLE_S = 5
"""How long no new request must have come."""
DRAIN_TIMEOUT_S = 60
"""How long it goes on answering at most."""
EXIT_TIMEOUT_S = 30
"""How long the requests that it has accepted may take after that."""
_SLACK_S = 10
DRAIN_FLAGS = (f"--drain-quiet-secs={DRAIN_IDLE_S}", f"--drain-timeout-secs={DRAIN_TIMEOUT_S}")
"""Of the bundled server, for its end, and of the agent, for a model that leaves."""
TERMINATION_GRACE_S = DRAIN_TIMEOUT_S + EXIT_TIMEOUT_S + _SLACK_S
"""After how long a Pod is killed."""

_ANSWER_S = 10
# One that refuses the connection, or has no model, is waited for no longer. Every image of NVIDIA's has bash.
_UNTIL_IDLE = """\
counters() {
  exec 3<>/dev/tcp/127.0.0.1/$1 && printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&3 &&
  grep -E '^nv_inference_(request_success|request_failure|exec_count|pending_request_count)' <&3
}
export -f counters
before= quiet_since=$SECONDS
while [ $SECONDS -lt $3 ]; do
  now=$(timeout $4 bash -c "counters $1")
  case $? in 0) ;; 124) now=busy$SECONDS ;; *) exit 0 ;; esac
  [ "$now" = "$before" ] || { before=$now quiet_since=$SECONDS; }
  [ $((SECONDS - quiet_since)) -lt $2 ] || exit 0
  sleep 0.5
done
"""


def ending_flags(runtime: RuntimeName) -> list[str]:
    """Return the server's flags for this termination."""
    flags = [f"--exit-timeout-secs={EXIT_TIMEOUT_S}"]
    if runtime is RuntimeName.ARGOSY:
        flags += DRAIN_FLAGS
    return flags


def lifecycle(runtime: RuntimeName) -> dict[str, Any]:
    """Return the container's `lifecycle`, where it needs one."""
    if runtime is RuntimeName.ARGOSY:
        return {}
    command = until_idle(METRICS_PORT, DRAIN_IDLE_S, DRAIN_TIMEOUT_S)
    return {"lifecycle": {"preStop": {"exec": {"command": command}}}}


def until_idle(port: int, idle_s: int, timeout_s: int, answer_s: int = _ANSWER_S) -> list[str]:
    """Return a command that ends once the counters at a metrics port have not changed for `idle_s`, or after
    `timeout_s`.

    A server that does not answer within `answer_s` counts as busy.
    """
    return ["bash", "-c", _UNTIL_IDLE, "bash", *map(str, (port, idle_s, timeout_s, answer_s))]

"""A connection to a Prometheus, with a thread that sends queries one by one: prometheus-api-client over requests."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import requests
from prometheus_api_client import PrometheusConnect
from requests.auth import HTTPBasicAuth
from urllib3.util.retry import Retry

from argosy_agent.threads import Worker
from argosy_common.wording import shortened

from .login import Login

Result = TypeVar("Result")
Ask = Callable[[str], object]
"""Sends one query and returns its result. Raises PrometheusError."""
_LONGEST_REASON = 300
"""Characters of a server's own words that a message has."""


class PrometheusError(Exception):
    """A query was not answered; the message says why. `reachable`: other queries may be answered."""

    def __init__(self, message: str, reachable: bool = False) -> None:
        super().__init__(message)
        self.reachable = reachable


class _Token:
    """A bearer token; an object of its own, so that no ~/.netrc takes its place."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: Any) -> Any:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class PrometheusConnection:
    """A connection that stays open between queries, with its thread."""

    def __init__(self, url: str, login: Login, timeout_s: int) -> None:
        self._url, self._login, self._timeout_s = url.rstrip("/"), login, timeout_s
        self._connect: PrometheusConnect | None = None
        self._worker = Worker()

    def submit(self, work: Callable[[Ask], Result]) -> asyncio.Future[Result]:
        """Run `work`, which may send queries, in the connection's thread. Return its result, or raise its error."""
        return self._worker.do(lambda: work(self._query))

    def close(self) -> None:
        """Close the connection after the running query has ended."""
        self._worker.do(self._disconnect)
        self._worker.close()

    def _query(self, query: str) -> object:
        try:
            if self._connect is None:
                self._connect = self._opened()
            return self._connect.custom_query(query)
        except requests.Timeout as error:
            raise PrometheusError(f"{self._url} does not answer within {self._timeout_s} s") from error
        except requests.exceptions.InvalidJSONError as error:
            raise PrometheusError(f"{self._url} answers no JSON, as a Prometheus does; is the URL right?") from error
        except ValueError as error:
            raise PrometheusError(
                f"{self._url} is no URL that could be asked: {shortened(str(error), _LONGEST_REASON)}"
            ) from error
        except requests.RequestException as error:
            raise PrometheusError(f"Prometheus {self._url} cannot be reached: {_deepest(error)}") from error
        except (KeyError, TypeError, AttributeError) as error:
            raise PrometheusError(f"{self._url} answers JSON that no Prometheus does; is the URL right?") from error

    def _disconnect(self) -> None:
        if self._connect is not None:
            self._connect.close()

    def _opened(self) -> PrometheusConnect:
        session = requests.Session()
        session.hooks["response"].append(self._check)
        # It is asked again soon by itself: a retry at once would only make a burdened server slower.
        retry = Retry(total=0, redirect=3)
        return PrometheusConnect(
            self._url, auth=_auth(self._login), retry=retry, session=session, timeout=self._timeout_s, method="POST"
        )

    def _check(self, response: requests.Response, **_: Any) -> None:
        """Raise PrometheusError for an HTTP error, before the client makes a text of its body."""
        status = response.status_code
        if status == requests.codes.ok or response.is_redirect:
            return
        if status in (401, 403):
            field = "spec.monitoring.prometheus.secretName"
            raise PrometheusError(f"{self._url} does not let us in ({status}); check the Secret that {field} names")
        if status in (400, 422):
            raise PrometheusError(f"{self._url} does not take the query: {_reason(response)}", reachable=True)
        raise PrometheusError(f"{self._url} answers {status}: {_reason(response)}")


def _auth(login: Login) -> Any:
    if login.token:
        return _Token(login.token)
    return HTTPBasicAuth(login.username, login.password) if login.username else None


def _reason(response: requests.Response) -> str:
    """Return Prometheus's own error. Nothing of a body that is not Prometheus's is passed on."""
    try:
        return shortened(str(response.json()["error"]), _LONGEST_REASON)
    except (ValueError, KeyError, TypeError):
        return "it does not say why"


def _deepest(error: BaseException) -> str:
    """Return the system's own error, such as `Connection refused`; the outer errors have the query's whole URL."""
    reason, outer = "", error
    while (cause := outer.__cause__ or outer.__context__) is not None:
        reason = getattr(cause, "strerror", None) or reason
        outer = cause
    return shortened(reason or str(error), _LONGEST_REASON)

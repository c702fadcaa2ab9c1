"""One Prometheus, asked one question after another, each of which blocks: prometheus-api-client over requests."""

import ast
import json
import re
from typing import Any

import requests
from prometheus_api_client import PrometheusApiClientException, PrometheusConnect
from requests.auth import HTTPBasicAuth
from urllib3.util.retry import Retry

from argosy_common.shortening import shortened

from .login import Login

_STATUS = re.compile(r"HTTP Status Code (\d+) \((.*)\)", re.DOTALL)
_WORDS_MOST = 300


class PrometheusError(Exception):
    """It could not be asked, or refused; the message says why. `reachable`: others may be answered."""

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
    """Keeps its connections open between questions."""

    def __init__(self, url: str, login: Login, timeout_s: int) -> None:
        self._url, self._login, self._timeout_s = url.rstrip("/"), login, timeout_s
        self._connect: PrometheusConnect | None = None

    def ask(self, query: str) -> Any:
        """Return the answer's `result`, now. Raises PrometheusError."""
        try:
            if self._connect is None:
                self._connect = self._opened()
            return self._connect.custom_query(query)
        except PrometheusApiClientException as error:
            raise self._refused(str(error)) from error
        except requests.Timeout as error:
            raise PrometheusError(f"{self._url} does not answer within {self._timeout_s} s") from error
        except requests.exceptions.InvalidJSONError as error:
            raise PrometheusError(f"{self._url} answers no JSON, as a Prometheus does; is the URL right?") from error
        except ValueError as error:
            raise PrometheusError(
                f"{self._url} is no URL that could be asked: {shortened(str(error), _WORDS_MOST)}"
            ) from error
        except requests.RequestException as error:
            raise PrometheusError(f"Prometheus {self._url} cannot be reached: {_deepest(error)}") from error
        except (KeyError, TypeError, AttributeError) as error:
            raise PrometheusError(f"{self._url} answers JSON that no Prometheus does; is the URL right?") from error

    def close(self) -> None:
        """Let its connections go."""
        if self._connect is not None:
            self._connect.close()

    def _opened(self) -> PrometheusConnect:
        # It is asked again soon by itself: to repeat a question at once would only make a burdened one slower.
        retry = Retry(total=0, redirect=3)
        return PrometheusConnect(
            self._url, auth=_auth(self._login), retry=retry, timeout=self._timeout_s, method="POST"
        )

    def _refused(self, text: str) -> PrometheusError:
        match = _STATUS.match(text)
        status, body = (match[1], match[2]) if match else ("", text)
        if status in ("401", "403"):
            field = "spec.monitoring.prometheus.secretName"
            return PrometheusError(f"{self._url} does not let us in ({status}); check the Secret that {field} names")
        if status in ("400", "422"):
            return PrometheusError(f"{self._url} does not take the query: {_reason(body)}", reachable=True)
        return PrometheusError(f"{self._url} answers {status or 'an error'}: {_reason(body)}")


def _auth(login: Login) -> Any:
    if login.token:
        return _Token(login.token)
    return HTTPBasicAuth(login.username, login.password) if login.username else None


def _reason(body: str) -> str:
    """What Prometheus says, out of a body as `repr` shows it. Of what is no Prometheus nothing is passed on."""
    try:
        return shortened(str(json.loads(ast.literal_eval(body))["error"]), _WORDS_MOST)
    except (ValueError, SyntaxError, KeyError, TypeError):
        return "it does not say why"


def _deepest(error: BaseException) -> str:
    """What the system said, such as `Connection refused`; around it stand the question's whole URL and addresses in
    memory.
    """
    said, cause = "", error
    while (cause := cause.__cause__ or cause.__context__) is not None:  # type: ignore[assignment]
        said = getattr(cause, "strerror", None) or said
    return shortened(said or str(error), _WORDS_MOST)

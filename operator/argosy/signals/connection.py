"""One Prometheus, asked one question after another, each of which blocks: prometheus-api-client over requests."""

import ast
import json
import re
from typing import Any

import requests
from prometheus_api_client import PrometheusApiClientException, PrometheusConnect
from requests.auth import HTTPBasicAuth
from urllib3.util.retry import Retry

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
        self._url, self._timeout_s = url.rstrip("/"), timeout_s
        # It is asked again soon by itself: to repeat a question at once would only make a burdened one slower.
        self._connect = PrometheusConnect(
            self._url, auth=_auth(login), retry=Retry(total=0, redirect=3), timeout=timeout_s, method="POST"
        )

    def ask(self, query: str) -> Any:
        """The answer's `result`, now. Raises PrometheusError."""
        try:
            return self._connect.custom_query(query)
        except PrometheusApiClientException as error:
            raise self._refused(str(error)) from error
        except requests.Timeout as error:
            raise PrometheusError(f"{self._url} does not answer within {self._timeout_s} s") from error
        except requests.exceptions.InvalidJSONError as error:
            raise PrometheusError(f"{self._url} answers no JSON, as a Prometheus does; is the URL right?") from error
        except requests.RequestException as error:
            raise PrometheusError(f"{self._url} cannot be reached: {_shortened(str(error))}") from error
        except (KeyError, TypeError) as error:
            raise PrometheusError(f"{self._url} answers JSON that no Prometheus does; is the URL right?") from error

    def close(self) -> None:
        """Let its connections go."""
        self._connect.close()

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
    """What Prometheus says is wrong, out of a body as `repr` shows it."""
    try:
        return str(json.loads(ast.literal_eval(body))["error"])
    except (ValueError, SyntaxError, KeyError, TypeError):
        return _shortened(body)


def _shortened(text: str) -> str:
    return text if len(text) <= _WORDS_MOST else f"{text[:_WORDS_MOST]}…"

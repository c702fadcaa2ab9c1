"""The real Prometheus, Debian's, scraping what a test names. It listens on 127.0.0.1, by default on a free port."""

import http.client
import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import yaml
from e2e.cluster.programs import packages
from e2e.cluster.state import free_ports
from e2e.cluster.waiting import wait_for

PACKAGE = packages.Package("prometheus", "prometheus")
WEB_CONFIG = "web.yml"


def install() -> str:
    """Return the path of the program, next to promtool. Raises ClusterUnavailableError where it is unavailable."""
    packages.ensure([PACKAGE])
    return str(shutil.which(PACKAGE.program))


@dataclass(frozen=True, slots=True)
class Scraped:
    """Addresses (`host:port`), and the labels that their samples get."""

    addresses: Sequence[str]
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Prometheus:
    """A Prometheus whose targets may be changed while it runs. `folder` holds its files, `port` stays its own. `rules`:
    a rule file's text.
    """

    folder: Path
    interval_s: float = 1.0
    web: Mapping[str, object] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    rules: str = ""
    port: int = field(default_factory=lambda: free_ports(1)[0])
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def scrape(self, targets: Sequence[Scraped]) -> None:
        """Scrape just these from now on; it takes effect within a second or so."""
        groups = [{"targets": list(target.addresses), "labels": dict(target.labels)} for target in targets]
        temporary = self.folder / "targets.new"
        temporary.write_text(json.dumps(groups))
        temporary.rename(self.folder / "targets.json")

    def start(self) -> None:
        """Start it and wait until it is ready. Its data outlast a `stop`."""
        program = install()
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / "targets.json").exists():
            self.scrape([])
        every = f"{round(self.interval_s * 1000)}ms"
        servers = {"job_name": "servers", "file_sd_configs": [{"files": [str(self.folder / "targets.json")]}]}
        paces = {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every}
        config = {"global": paces, "scrape_configs": [servers], "rule_files": ["rules.yaml"]}
        (self.folder / "rules.yaml").write_text(self.rules or "groups: []\n")
        (self.folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        (self.folder / WEB_CONFIG).write_text(yaml.safe_dump(dict(self.web or {})))
        with (self.folder / "prometheus.log").open("ab") as log:
            self.process = subprocess.Popen([program, *self._flags()], stdout=log, stderr=log)
        wait_for("Prometheus to be ready", self._ready, timeout_s=60)

    def stop(self, *, kill: bool = False) -> None:
        """End it."""
        if self.process is not None:
            (self.process.kill if kill else self.process.terminate)()
            self.process.wait(30)
            self.process = None

    def value(self, query: str) -> float | None:
        """Return the first value of a query now; None where it has none."""
        status, body = self._get(f"/api/v1/query?{urlencode({'query': query})}")
        if status != 200:
            raise RuntimeError(f"{query}: {status} {body!r}")
        result = json.loads(body)["data"]["result"]
        return float(result[0]["value"][1]) if result else None

    def _flags(self) -> list[str]:
        return [
            f"--config.file={self.folder / 'prometheus.yml'}",
            f"--web.config.file={self.folder / WEB_CONFIG}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]

    def _ready(self) -> bool:
        if self.process is not None and self.process.poll() is not None:
            log = (self.folder / "prometheus.log").read_text(errors="replace")
            raise RuntimeError(f"Prometheus ended with {self.process.returncode}:\n{log[-2000:]}")
        try:
            return self._get("/-/ready")[0] == 200
        except OSError:
            return False

    def _get(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path, headers=dict(self.headers))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

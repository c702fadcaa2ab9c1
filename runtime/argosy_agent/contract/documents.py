"""The JSON texts between the operator and an agent: what a server should have, and the state that it reports. Pure.

`repository_text` and `state_text` give the same bytes for equal values, whatever order their mappings have, so that
texts can be compared. Parsing checks every field, since people edit ConfigMaps: its results are safe to make paths of.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .fields import Fields, check_unique, document, file_name, number, relative_path, unicode_text, uri
from .models import FailureKind, LoadedModel, LoadState, RenderedModel, RenderedRepository, VersionConfig, VersionSource

DESIRED_KEY = "repository.json"
"""The key of a server's ConfigMap under which its `repository_text` stands."""
STATE_KEY = "state.json"
"""The key of a server's state ConfigMap under which its `state_text` stands."""
FIELD_MANAGER = "argosy-agent"
"""The identity of an agent at the API server."""
NOTHING = RenderedRepository("")


@dataclass(frozen=True, slots=True)
class ConfigMapName:
    """A ConfigMap of one namespace."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class AgentState:
    """An agent's report of its server.

    `pod`: the UID of its Pod. `live`: the server answers. `settled`: since this Pod started, every desired model was
    ready or failed once; it never becomes false again. `models`: every version that the server has or should have.
    `applied`: the models that it last loaded. `desired`: the `fingerprint` of the repository text that is being
    applied, empty before there is one. `problem`: the reason why a newer text is not applied, or another error that
    does not belong to one model. `written_at`: the time of writing in Unix seconds by the agent's clock, 0 if unknown;
    it changes with each write, so that a reader sees whether the agent is alive. `left_out`: the number of models that
    did not fit into the document; their states are unknown.
    """

    pod: str = ""
    live: bool = False
    settled: bool = False
    models: tuple[LoadedModel, ...] = ()
    applied: RenderedRepository = NOTHING
    desired: str = ""
    problem: str = ""
    written_at: int = 0
    left_out: int = 0


def fingerprint(text: str) -> str:
    """Return a short hash of a repository text, as `AgentState.desired` holds it."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def repository_text(repository: RenderedRepository) -> str:
    """Return a repository as JSON, indented for people."""
    return _text(_of_repository(repository))


def parse_repository(text: str) -> RenderedRepository:
    """Return the repository in a text. Raises DocumentError, which names the field."""
    return _repository(document(text, DESIRED_KEY))


def state_text(state: AgentState) -> str:
    """Return a state as JSON, indented for people."""
    models = [_of_loaded(loaded) for loaded in state.models]
    return _text(
        {
            "pod": state.pod,
            "live": state.live,
            "settled": state.settled,
            "desired": state.desired,
            "problem": state.problem,
            **({"writtenAt": state.written_at} if state.written_at else {}),
            **({"leftOut": state.left_out} if state.left_out else {}),
            "models": models,
            "applied": _of_repository(state.applied),
        }
    )


def parse_state(text: str) -> AgentState:
    """Return the state in a text. Raises DocumentError, which names the field."""
    fields = document(text, STATE_KEY)
    return AgentState(
        pod=fields.text("pod"),
        live=fields.flag("live"),
        settled=fields.flag("settled"),
        models=tuple(map(_loaded, fields.list("models"))),
        applied=_repository(fields.mapping("applied")),
        desired=fields.text("desired"),
        problem=fields.text("problem", ""),
        written_at=fields.number("writtenAt", 0),
        left_out=fields.number("leftOut", 0),
    )


def model_text_bytes(model: RenderedModel) -> int:
    """Return the bytes of an applied model in the text of a state."""
    return _part_bytes(of_model(model), indentation=3)


def loaded_text_bytes(loaded: LoadedModel) -> int:
    """Return the bytes of a reported version in the text of a state."""
    return _part_bytes(_of_loaded(loaded), indentation=2)


def of_model(model: RenderedModel) -> dict[str, Any]:
    """Return a model as plain JSON values."""
    return {
        "name": model.name,
        "config": model.config_text,
        "versions": {str(version): _of_source(model.versions[version]) for version in sorted(model.versions)},
        "steps": {name: model.steps[name] for name in sorted(model.steps)},
        "gpus": list(model.gpus),
        "reloadKey": model.reload_key,
        "configKey": model.config_key,
        **({"resource": model.resource} if model.resource else {}),
        **({"instances": model.instances} if model.instances else {}),
        **({"texts": {name: model.texts[name] for name in sorted(model.texts)}} if model.texts else {}),
        **({"alternatives": True} if model.alternatives else {}),
        **({"base": model.base} if model.base else {}),
    }


def to_model(fields: Fields) -> RenderedModel:
    """Return the model that `of_model` made these of. Raises DocumentError."""
    name = file_name(fields.text("name"), fields.at("name"))
    versions, steps = fields.mapping("versions"), fields.mapping("steps", {})
    texts = fields.mapping("texts", {})
    reload_key = fields.text("reloadKey", "")
    # Where the one key stood for all of the config there is no other key.
    config_key = fields.text("configKey", reload_key)
    return RenderedModel(
        name=name,
        config_text=fields.text("config"),
        versions={number(key, versions.at(key)): _source(versions.mapping(key)) for key in versions.values},
        steps=_steps(steps),
        gpus=fields.numbers("gpus"),
        reload_key=reload_key if "configKey" in fields.values else "",
        resource=fields.text("resource", ""),
        config_key=config_key,
        instances=fields.number("instances", 0),
        texts={file_name(name, texts.path): texts.text(name) for name in texts.values},
        alternatives=fields.flag("alternatives", False),
        base=fields.text("base", ""),
    )


def _of_repository(repository: RenderedRepository) -> dict[str, Any]:
    return {"server": repository.server, "models": [of_model(model) for model in repository.models]}


def _repository(fields: Fields) -> RenderedRepository:
    models = tuple(map(to_model, fields.list("models")))
    check_unique((model.name for model in models), fields.at("models"))
    return RenderedRepository(fields.text("server"), models)


def _of_source(source: VersionSource) -> dict[str, Any]:
    values = {
        "uri": source.uri,
        "digest": source.digest,
        "filename": source.filename,
        "memory": source.memory,
        "whole": source.exclusive,
        "secret": source.secret,
        "own": _of_config(source.own) if source.own is not None else None,
    }
    return {key: value for key, value in values.items() if value}


def _of_config(own: VersionConfig) -> dict[str, Any]:
    return {
        "config": own.text,
        "steps": {name: own.steps[name] for name in sorted(own.steps)},
        "reloadKey": own.reload_key,
        "configKey": own.config_key,
    }


def _source(fields: Fields) -> VersionSource:
    filename = fields.text("filename", "")
    if filename:
        relative_path(filename, fields.at("filename"))
    return VersionSource(
        uri=uri(fields.text("uri", ""), fields.at("uri")),
        digest=fields.text("digest", ""),
        filename=filename,
        memory=fields.number("memory", 0),
        exclusive=fields.flag("whole", False),
        secret=file_name(secret, fields.at("secret")) if (secret := fields.text("secret", "")) else "",
        own=_config(fields.mapping("own")) if "own" in fields.values else None,
    )


def _config(fields: Fields) -> VersionConfig:
    steps = fields.mapping("steps", {})
    return VersionConfig(
        text=fields.text("config"),
        config_key=fields.text("configKey", ""),
        reload_key=fields.text("reloadKey", ""),
        steps=_steps(steps),
    )


def _steps(fields: Fields) -> dict[str, int]:
    return {unicode_text(name, fields.path): fields.number(name) for name in fields.values}


def _of_loaded(loaded: LoadedModel) -> dict[str, Any]:
    values: dict[str, Any] = {"model": loaded.model, "version": loaded.version, "state": str(loaded.state)}
    if loaded.reason:
        values["reason"] = loaded.reason
    if loaded.failure is not None:
        values["failure"] = str(loaded.failure)
    if loaded.former:
        values["former"] = True
    if loaded.digest:
        values["digest"] = loaded.digest
    if loaded.attempts:
        values["attempts"] = loaded.attempts
    return values


def _loaded(fields: Fields) -> LoadedModel:
    failure = fields.text("failure", "")
    return LoadedModel(
        model=fields.text("model"),
        version=fields.number("version"),
        state=LoadState(fields.one_of("state", LoadState)),
        reason=fields.text("reason", ""),
        failure=FailureKind(fields.one_of("failure", FailureKind)) if failure else None,
        former=fields.flag("former", False),
        digest=fields.text("digest", ""),
        attempts=fields.number("attempts", 0),
    )


def _part_bytes(value: Mapping[str, Any], indentation: int) -> int:
    """Return the bytes of an element of a list at this depth, with the comma and the end of the line before it."""
    text = _text(value)
    return len(text.encode(errors="surrogatepass")) + indentation * text.count("\n") + 1


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"

"""How the benchmark of drains sends connections to servers that end, renders their commands, and counts."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from benchmarks.rollout.__main__ import main
from benchmarks.rollout.draining import scenarios, service
from benchmarks.rollout.draining.clients import Tally
from benchmarks.rollout.draining.pods import command, rendered_pod
from benchmarks.rollout.draining.scenarios import SCENARIOS, Outcome, Scenario

from argosy.render.workloads.pods.ending import DRAIN_FLAGS, TERMINATION_GRACE_S


@asynccontextmanager
async def endpoint(name: bytes) -> AsyncIterator[service.Ports]:
    """Yield the ports of a server that answers each line with its name, and closes after `bye`."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(name + b":" + line)
            if line == b"bye\n":
                break
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield {"http": server.sockets[0].getsockname()[1]}


async def ask(port: int, *lines: bytes) -> list[bytes]:
    """Return the answers of one connection, until it is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.writelines(lines)
    answers = (await reader.read()).splitlines()
    writer.close()
    return answers


async def test_new_connections_go_to_the_endpoints_in_turn_and_stay_there() -> None:
    async with service.opened() as opened, endpoint(b"a") as first, endpoint(b"b") as second:
        opened.add(first)
        opened.add(second)
        answers = [await ask(opened.ports["http"], b"1\n", b"bye\n") for _ in range(4)]
    assert sorted(answers) == [[b"a:1", b"a:bye"]] * 2 + [[b"b:1", b"b:bye"]] * 2


async def test_a_connection_outlasts_its_endpoints_address_and_a_refused_one_is_reset() -> None:
    async with service.opened() as opened, endpoint(b"a") as only:
        opened.add(only)
        reader, writer = await asyncio.open_connection("127.0.0.1", opened.ports["http"])
        writer.write(b"1\n")
        assert await reader.readline() == b"a:1\n"
        opened.remove(only)
        writer.write(b"bye\n")
        assert await reader.read() == b"a:bye\n"
        writer.close()
        with pytest.raises(ConnectionResetError):
            await ask(opened.ports["http"], b"1\n")


async def test_what_an_endpoint_sends_first_reaches_the_client_and_so_does_its_end() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    async with service.opened() as opened, await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        opened.add({"http": server.sockets[0].getsockname()[1]})
        assert [await ask(opened.ports["http"]) for _ in range(20)] == [[b"hello"]] * 20


def test_a_pod_has_the_arguments_that_the_operator_renders() -> None:
    server, agent = rendered_pod()["containers"]
    line = command(server, {"--http-port": "0", "--control-token-file": None})
    assert line[1:3] == ["-m", "argosy_runtime.server"]
    assert set(DRAIN_FLAGS) < set(line)
    assert "--http-port=0" in line
    assert not any("token" in argument for argument in line)
    assert set(DRAIN_FLAGS) < set(command(agent, {}))
    assert rendered_pod()["terminationGracePeriodSeconds"] == TERMINATION_GRACE_S
    with pytest.raises(KeyError):
        command(server, {"--no-such-flag": "1"})


async def test_requests_that_fail_and_streams_that_are_cut_are_in_the_figures_with_their_words() -> None:
    async def fail() -> None:
        raise ValueError("lost")

    async def last() -> None:
        await asyncio.sleep(60)

    tally = Tally()
    await tally.request("new connection", asyncio.sleep(0))
    await tally.request("new connection", fail())
    await tally.stream("gRPC", last(), 0.0)
    figures = Outcome(tally).figures()
    assert (figures["requests"], figures["failed_requests"]) == (2, 1)
    assert (figures["streams"], figures["cut_streams"]) == (1, 1)
    assert set(figures["failures"]) == {"new connection: ValueError: lost", "gRPC: TimeoutError: "}


def test_the_drains_are_divided_among_the_scenarios(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def play(scenario: Scenario, drains: int) -> Outcome:
        assert scenario in SCENARIOS.values()
        return Outcome(Tally(requests=10), drains)

    monkeypatch.setattr(scenarios, "played", play)
    assert main(["--parts", "drains", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["drains"], result["failed_requests_of_drains"], result["cut_streams"]) == (100, 0, 0)
    assert result["drain_scenarios"].keys() == SCENARIOS.keys()

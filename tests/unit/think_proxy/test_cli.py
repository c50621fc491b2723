"""`think-proxy` as a process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from proxy_rig import SCOPE, Peer, opening, said
from think_proxy.cli import main

COMMAND = [sys.executable, "-c", "from think_proxy.cli import main; main()"]
UPSTREAM = ["--upstream", "http://127.0.0.1:9"]

PLAN = """\
version: 1
operations: [{client: a, do: send}]
faults:
  - {id: lose, leg: client, when: {direction: down, nth: 2}, do: [{cut: reset}]}
"""


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def children(pid: int) -> list[int]:
    """Of the first thread of a process."""
    return [*map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


Refused = Callable[..., str]


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Starts it with these arguments; returns the one line that says why it does not run."""

    def start(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["think-proxy", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 4
        output, errors = capsys.readouterr()
        assert output == ""
        [line] = errors.splitlines()
        return line.removeprefix("think-proxy: ")

    return start


def test_a_carrier_refuses_what_it_does_not_do_exactly(refused: Refused, tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN)
    line = refused("--listen", "0", *UPSTREAM, "--carrier", "mitmproxy", "--plan", str(path))
    assert line == "fault `lose` needs `do.cut.reset`: not supported by the mitmproxy WebSocket carrier"


async def test_mitmproxy_by_itself_and_what_becomes_of_it(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        PLAN.replace("direction: down, nth: 2", "client: a").replace("cut: reset", "status: {code: 503}")
    )
    asked = ("--carrier", "mitmproxy", "--listen", "0", *UPSTREAM, "--plan", str(plan))
    with running(*asked) as process:
        assert process.stderr is not None
        ready = await asyncio.to_thread(process.stderr.readline)
        port = int(ready.split(",")[0].rpartition(":")[2])
        client = Peer(*await asyncio.open_connection("127.0.0.1", port))
        client.send(opening(f"{SCOPE}?_pk=a.1"))
        assert (await client.rest())[0].startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        client.writer.close()
        [child] = children(process.pid)
        os.kill(child, signal.SIGKILL)
        output, errors = await asyncio.to_thread(process.communicate, timeout=10)
        assert (process.returncode, errors) == (
            3,
            "think-proxy: the carrier mitmproxy broke: its process ended\n",
        )
        kinds = [json.loads(line)["kind"] for line in output.splitlines()]
        assert kinds == ["fault-planned", "fault-fired", "fault-done"]


async def test_a_plan_strikes_and_the_journal_tells(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    accepted: asyncio.Queue[Peer] = asyncio.Queue()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.put_nowait(Peer(reader, writer))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    upstream_port = server.sockets[0].getsockname()[1]
    arguments = ("--listen", "0", "--upstream", f"http://127.0.0.1:{upstream_port}", "--plan", str(plan))
    with running(*arguments) as process:
        assert process.stderr is not None
        ready = await asyncio.to_thread(process.stderr.readline)
        assert ready.startswith("listening on http://127.0.0.1:")
        port = int(ready.split(",")[0].rpartition(":")[2])
        client = Peer(*await asyncio.open_connection("127.0.0.1", port))
        client.send(f"GET {SCOPE}?_pk=a.1 HTTP/1.1\r\nUpgrade: websocket\r\n\r\n".encode())
        upstream = await accepted.get()
        await upstream.head()
        upstream.send(b"HTTP/1.1 101 S\r\nUpgrade: websocket\r\n\r\n" + said(1) + said(2))
        await client.head()
        assert await client.rest() == (said(1), "reset")
        process.send_signal(signal.SIGINT)
        output, errors = await asyncio.to_thread(process.communicate, timeout=10)
        assert (process.returncode, errors) == (130, "")
        rows = [json.loads(line) for line in output.splitlines()]
        assert [row["kind"] for row in rows] == ["fault-planned", "fault-fired", "fault-done"]
        assert {row["source"] for row in rows} == {"proxy"}
        assert rows[1]["ids"] == {"fault": "lose", "token": "lose#1", "connection": "a.1", "client": "a"}
        client.writer.close()
        upstream.writer.close()
    server.close()


@pytest.mark.parametrize(
    ("plan", "line"),
    [
        (PLAN.replace("nth: 2", "nth: x"), "{path}:4:58: Expected `int | null`, got `str`"),
        ("version: [", "{path}:1:11: expected the node content, but found '<stream end>'"),
        (
            PLAN.replace("{cut: reset}", "{process: kill}"),
            "fault `lose` needs `do.process`: not supported by the WebSocket carrier without a process",
        ),
        (
            PLAN.replace("leg: client", "leg: target"),
            "fault `lose` needs `leg target`: not supported by the WebSocket carrier without a process",
        ),
    ],
)
def test_a_plan_that_cannot_be_run_is_refused(refused: Refused, tmp_path: Path, plan: str, line: str) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(plan)
    assert refused("--listen", "0", *UPSTREAM, "--plan", str(path)) == line.replace("{path}", str(path))


def test_a_plan_is_for_the_leg_it_names(refused: Refused, tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN)
    line = refused("--listen", "0", *UPSTREAM, "--leg", "model", "--plan", str(path))
    assert line == "fault `lose` needs `leg client`: not supported by the HTTP carrier without a process"


def test_files_that_cannot_be_read_are_refused(refused: Refused, tmp_path: Path) -> None:
    missing = tmp_path / "none.yaml"
    assert refused("--listen", "0", *UPSTREAM, "--plan", str(missing)) == (
        f"{missing}: No such file or directory"
    )
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    assert refused("--listen", "0", *UPSTREAM, "--plan", str(binary)) == f"{binary}: not a text in UTF-8"


def test_a_port_that_is_taken_is_refused(refused: Refused) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert refused("--listen", str(port), *UPSTREAM).startswith(f"cannot listen on 127.0.0.1:{port}: ")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--listen", "0", *UPSTREAM, "--leg", "moon"], "'moon' is not one of 'client', 'routing', 'model'"),
        (["--listen", "x", *UPSTREAM], "Invalid value for '--listen': `x` is no port and no host:port"),
        (["--listen", "99999", *UPSTREAM], "Invalid value for '--listen': `99999` is no port"),
        (["--listen", "0", "--upstream", "https://x"], "`https://x` is no http://host:port"),
        (["--listen", "0", "--upstream", "http://x:y"], "`http://x:y` is no http://host:port"),
        (["--listen", "0"], "Missing option '--upstream'"),
        (["--moon"], "No such option"),
    ],
)
def test_bad_usage_is_refused(refused: Refused, arguments: list[str], line: str) -> None:
    assert line in refused(*arguments)

"""The ways of running a Python program that ``bench step`` compares."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Protocol

import msgspec

from toolenvs import engine, runtimes
from toolenvs.drivers import run
from toolenvs.engine import Engine
from toolenvs.env import ToolEnv
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.pool import SandboxPool
from toolenvs.protocols import Runtime, Sandbox, Worker
from toolenvs.types import Task, ToolCall

KEPT = "session"
"""The way that all others are compared with."""

BURSTS = {"session": 20, "session_env": 20}
"""Ways of which a round makes so many calls in a row; the median of these is the round's value."""

TURNS_PER_EPISODE = 50
"""Steps of one environment episode; a new one begins, unmeasured and warmed, after these."""

_DOCKER_STREAM = "docker-stream"


class Payload(msgspec.Struct, frozen=True):
    """A program and the one line that it must print."""

    name: str
    code: str
    expected: str


PAYLOADS = {
    payload.name: payload
    for payload in (
        Payload("print", "print(1+1)", "2"),
        Payload(
            "sympy",
            "import sympy\nx = sympy.symbols('x')\nprint(sympy.solve(x**2 - 5*x + 6, x))",
            "[2, 3]",
        ),
        Payload(
            "numpy",
            "import numpy\nm = numpy.ones((100, 100))\nprint(int((m @ m).trace()))",
            "10000",
        ),
    )
}


def make_sandbox(name: str, **options: Any) -> Runtime:
    """A runtime by its name; ``"docker-stream"`` is docker by the attached stream.

    Raises:
        UnknownNameError: No sandbox has that name.
    """
    if name == _DOCKER_STREAM:
        return runtimes.make("docker", transport="stream", **options)
    return runtimes.make(name, **options)


def check_answer(who: str, payload: Payload, printed: str) -> None:
    """See that a program printed what it must.

    Raises:
        RuntimeFailure: It did not.
    """
    if printed.strip() != payload.expected:
        raise RuntimeFailure(
            "wrong_answer",
            f"{who}: {payload.name} printed {printed.strip()[:200]!r} instead of "
            f"{payload.expected!r}; a wrong answer has no speed.",
        )


class Way(Protocol):
    """One way of running a program."""

    def prepare(self) -> None:
        """Do what is not to be measured before the next call."""
        ...

    def call(self, code: str) -> str:
        """Run the program and return what it printed."""
        ...


@contextlib.contextmanager
def open_ways(runtime: Runtime, *, docker_run: bool = False) -> Iterator[dict[str, Way]]:
    """Open all ways that a sandbox has, the kept session first.

    Args:
        runtime: starts the workers.
        docker_run: also start a container for each call.

    Raises:
        RuntimeFailure: The sandbox cannot be started.
        UsageError: ``docker_run`` was asked for without docker.
    """
    if docker_run and runtime.name != "docker":
        raise UsageError(f"a container for each call needs sandbox 'docker', not {runtime.name!r}.")
    with contextlib.ExitStack() as stack:
        api = stack.enter_context(engine.connect()) if runtime.name == "docker" else None
        others = _containers(api) if api else {}
        worker = run(runtime.start())
        stack.callback(lambda: run(worker.stop()))
        ways = _sandboxed(runtime, worker, stack)
        if api is None:
            yield {**ways, "host_python": HostPython()}
            return
        (container_id, image), *_ = [
            item for item in _containers(api).items() if item[0] not in others
        ]
        ways["docker_exec"] = DockerExec(api, container_id)
        if docker_run:
            ways["docker_run"] = DockerRun(api, image)
        yield ways


def _sandboxed(runtime: Runtime, worker: Worker, stack: contextlib.ExitStack) -> dict[str, Way]:
    """The ways that every sandbox has; the pool starts its own worker at the first call."""
    pool = SandboxPool(runtime)
    stack.callback(pool.close)
    kept = Session(run(worker.spawn(seed=0, files={})))
    env = stack.enter_context(contextlib.closing(EnvStep("python_session", pool)))
    fresh = stack.enter_context(contextlib.closing(EnvStep("python", pool)))
    # The first call finds the machine as the way before it left it: caches and processor cold.
    return {
        "session_first": kept,
        KEPT: kept,
        "session_env_first": env,
        "session_env": env,
        "fresh_env": fresh,
    }


def _containers(api: Engine) -> dict[str, str]:
    """The image of each container that this process started, by the container's id."""
    return {item.id: item.image for item in api.leftovers() if item.mine}


class Session:
    """A kept session, spoken to by the sandbox's client alone."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def prepare(self) -> None:
        pass

    def call(self, code: str) -> str:
        return run(self._sandbox.execute(code)).stdout


class EnvStep:
    """A step of the environment: parse, run, score, render, record.

    Args:
        tool: the tool that runs the program. pool: where its sandboxes come from.
    """

    def __init__(self, tool: str, pool: SandboxPool) -> None:
        self._tool = tool
        self._env = ToolEnv(
            tasks=[Task(id="bench", prompt="Run Python.", answer="0")],
            tools=[tool, "submit"],
            sandbox=pool,
            format="hermes",
            max_turns=10 * TURNS_PER_EPISODE,
        )
        self._turns = TURNS_PER_EPISODE
        self._actions: dict[str, str] = {}

    def prepare(self) -> None:
        if self._turns < TURNS_PER_EPISODE:
            return
        self.reset()
        self._turns = 0
        for payload in PAYLOADS.values():
            call = ToolCall(self._tool, {"code": payload.code})
            self._actions[payload.code] = self._env.format.compose([call])
            self.call(payload.code)

    def reset(self) -> None:
        """Begin the next episode."""
        self._env.reset(seed=0)

    def call(self, code: str) -> str:
        self._turns += 1
        info = self._env.step(self._actions[code])[4]
        return str(info["results"][0]["data"].get("stdout", info["results"][0]["text"]))

    def close(self) -> None:
        self._env.close()


class HostPython:
    """A new interpreter on the host for each call: no sandbox at all."""

    def prepare(self) -> None:
        pass

    def call(self, code: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, text=True, timeout=60
        ).stdout


class DockerExec:
    """A new interpreter in the worker's own container for each call, by the engine's API."""

    def __init__(self, api: Engine, container_id: str) -> None:
        self._api = api
        self._container_id = container_id

    def prepare(self) -> None:
        pass

    def call(self, code: str) -> str:
        status, output = self._api.execute(self._container_id, ("python3", "-c", code))
        if status:
            raise RuntimeFailure("engine", f"docker exec ended with {status}: {output[-500:]!r}")
        return output.decode()


class DockerRun:
    """A new container of the same image for each call, removed after it."""

    def __init__(self, api: Engine, image: str) -> None:
        self._api = api
        self._image = image

    def prepare(self) -> None:
        pass

    def call(self, code: str) -> str:
        return self._api.output(self._image, ("python3", "-c", code))

"""Sandboxes on this machine without a container engine, by Linux namespaces alone.

The supervisor that also runs in containers runs here in a small read-only tree: the system's
``/usr``, the interpreter at ``/opt/py``, numpy, scipy and sympy at ``/opt/site``. No network, no
host paths, host name ``sandbox``. It works as root and as an ordinary user; each sandbox has user,
process, mount and System V namespaces of its own, a private folder in memory, Landlock and a
filter of system calls.

Held, as in a container: files, processes, sockets and memory of other sandboxes and of the machine
are out of reach; limits on time, address space of a process, processes, files, disk and output.

Not held, unlike in a container: the *sum* of memory over a sandbox's processes (no control group;
at most ``processes`` times ``memory_bytes``), the share of processors, and everything a container
engine adds against faults of the kernel. ``sysconfig`` still tells where the interpreter was
built, and programs in ``/usr`` are the machine's own.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import platform
import secrets
import socket
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from toolenvs import channel, supervisor
from toolenvs.admission import admission
from toolenvs.channel import ChannelWorker
from toolenvs.companion import Companion
from toolenvs.drivers import Blocking
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.types import Limits

_PACKAGES = ("numpy", "scipy", "sympy", "mpmath")
_PYTHON, _SITE = "/opt/py", "/opt/site"
_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
_DEVICES = ("null", "zero", "full", "random", "urandom")
_FROM_ETC = ("/etc/ld.so.cache", "/etc/alternatives")
_USERS = "root:x:0:0:root:/:/bin/sh\nsandbox:x:1000:1000::/work:/bin/sh\n"
_GROUPS = "root:x:0:\nsandbox:x:1000:\n"
_UNUSED_IDS = (1 << 30, 1 << 29)  # from, how many: above what distributions and tools hand out


class Local:
    """The embedded sandbox: Linux only, weaker than a container; the module says where.

    Args:
        limits: what each sandbox may use.
        capacity: sandboxes of one worker at once.
        flavour: the language; there is only ``"python"``.
        spares: sandboxes forked ahead of need.
        preload: what a worker loads for all its sandboxes: ``"standard"``, ``"numpy"``, ``"sympy"``
            or ``"scipy"``; see ``Docker``.
        calls_at_once: calls that may run at the same time; see ``Docker``.
    """

    name = "local"

    def __init__(
        self,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        capacity: int = 32,
        flavour: str = "python",
        spares: int = 1,
        preload: str = "sympy",
        calls_at_once: int = 0,
    ) -> None:
        if flavour != "python":
            raise UsageError(f"flavour {flavour!r} is not known here; allowed: 'python'")
        self.limits = limits
        self.capacity = capacity
        self.spares = spares
        self.preload = channel.checked_preload(preload)
        self.calls_at_once = admission(calls_at_once).places

    def fingerprint(self) -> str:
        """The interpreter, its packages, the processor's kind and the supervisor's own text."""
        digest = hashlib.sha256()
        for path in sorted(Path(supervisor.__path__[0]).glob("*.py")):
            digest.update(path.read_bytes())
        packages = " ".join(f"{name}={_version(name)}" for name in _PACKAGES)
        return (
            f"local python={platform.python_version()} {platform.machine()} {packages} "
            f"supervisor={digest.hexdigest()[:16]} preload={self.preload}"
        )

    async def start(self) -> ChannelWorker:
        if sys.platform != "linux":
            raise RuntimeFailure(
                "no_sandbox", "the local sandbox needs Linux: use sandbox='docker'"
            )
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            number = channel.slots(self.capacity, self.spares)
            end = await Blocking(lambda: _launch(theirs, number, self.preload))
        return await channel.open_worker(
            ours,
            limits=self.limits,
            capacity=self.capacity,
            spares=self.spares,
            gate=admission(self.calls_at_once),
            end=end,
        )


def _launch(control: socket.socket, slots: int, preload: str) -> Callable[[], None]:
    """Start the house; return the function that sees it end."""
    number = control.fileno()
    return Companion(["house", json.dumps(_plan(number, slots, preload))], [number]).end


def _plan(control: int, slots: int, preload: str = "sympy") -> dict[str, Any]:
    python, binds, hidden = _interpreter()
    binds += [("/usr", "/usr"), (_real(supervisor.__path__[0]), channel.SUPERVISOR_FOLDER)]
    binds += [(path, path) for path in (*_SYSTEM, *_FROM_ETC) if _is_plain(path)]
    binds += [(f"/dev/{name}", f"/dev/{name}") for name in _DEVICES]
    binds += [(_real(path), f"{_SITE}/{path.name}") for path in _site()]
    env = {
        "PATH": f"{Path(python).parent}:/usr/local/bin:/usr/bin:/bin",
        "PYTHONPATH": _SITE,
        "PYTHONHASHSEED": "0",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "LANG": "C.UTF-8",
    }
    if python.startswith(_PYTHON):
        env["LD_LIBRARY_PATH"] = f"{_PYTHON}/lib"  # a shared libpython was built for another place
    where = channel.arguments(
        level="namespaces", slots=slots, control=[f"fd:{control}"], preload=preload
    )
    low, count = _UNUSED_IDS
    return {
        "control": control,
        "uid": low + secrets.randbelow(count),
        "binds": binds,
        "links": [
            (path, str(Path(path).readlink())) for path in _SYSTEM if Path(path).is_symlink()
        ],
        "files": {"/etc/passwd": _USERS, "/etc/group": _GROUPS},
        "folders": [channel.WORK_FOLDER, *hidden],
        "command": [python, *where],
        "env": env,
    }


def _interpreter() -> tuple[str, list[tuple[str, str]], list[str]]:
    """Where the interpreter is inside, what must be shown there for it, and what must not."""
    executable = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    prefix = Path(sys.base_prefix).resolve()
    if prefix.is_relative_to("/usr"):
        return str(executable), [], []
    others = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    hidden = [f"{_PYTHON}/{others}"] if (prefix / others).is_dir() else []
    return f"{_PYTHON}/{executable.relative_to(prefix)}", [(str(prefix), _PYTHON)], hidden


def _site() -> Iterator[Path]:
    """The folders of the packages, with the shared libraries that wheels keep beside them."""
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            yield Path(place)
            libraries = Path(place).with_name(f"{name}.libs")
            if libraries.is_dir():
                yield libraries


def _real(path: str | Path) -> str:
    """The path without links: inside they would lead elsewhere."""
    return str(Path(path).resolve())


def _is_plain(path: str) -> bool:
    return Path(path).exists() and not (path in _SYSTEM and Path(path).is_symlink())


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"

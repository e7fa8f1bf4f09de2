"""Sandboxes on this machine without a container engine, by Linux namespaces alone.

The supervisor that also runs in containers runs here in a small read-only tree: the system's
``/usr``, the interpreter at ``/opt/py``, packages at ``/opt/site``, data at ``/data``. No network,
no host paths, host name ``sandbox``. It works as root and as an ordinary user; each sandbox has
user, process, mount and System V namespaces of its own, a private folder in memory, Landlock and a
filter of system calls.

Held, as in a container: files, processes, sockets and memory of other sandboxes and of the machine
are out of reach; limits on time, memory of a process and of a sandbox, processes, files, disk and
output.

Not held, unlike in a container: memory and processors of *all* sandboxes together (there is no
control group), and everything a container engine adds against faults of the kernel. ``sysconfig``
still tells where the interpreter was built, and programs in ``/usr`` are the machine's own.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import platform
import secrets
import socket
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from toolenvs import channel, supervisor
from toolenvs.admission import admission
from toolenvs.channel import ChannelWorker
from toolenvs.companion import Companion
from toolenvs.drivers import Blocking
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.places import DATA_FOLDER, checked_folders
from toolenvs.types import Limits

_PACKAGES = {
    "python": ("numpy", "scipy", "sympy", "mpmath"),
    "sql": ("sqlalchemy", "typing_extensions"),
}
# Packages of ours that are shown too, under a name of their own.
_OURS = {"python": {}, "sql": {"toolenvs_database": "toolenvs.database"}}
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
        preload: what a worker loads for all its sandboxes; see ``Docker``.
        calls_at_once: calls that may run at the same time; see ``Docker``.
        image: whose packages are shown: as in the image ``"python"`` or as in ``"sql"``, in the
            versions that are installed here; ``"auto"``: what ``preload`` is from.
        data: folders by name, shown read-only at ``/data/<name>``; see ``Docker``.

    Raises:
        UsageError: An option has no meaning; the message says what is allowed.
    """

    name = "local"

    def __init__(
        self,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        capacity: int = 32,
        flavour: str = "python",
        spares: int = 1,
        preload: str = "auto",
        calls_at_once: int = 0,
        image: Literal["auto", "python", "sql"] = "auto",
        data: Mapping[str, str | PathLike[str]] | None = None,
    ) -> None:
        if flavour != "python":
            raise UsageError(f"flavour {flavour!r} is not known here; allowed: 'python'")
        if image not in ("auto", *_PACKAGES):
            raise UsageError(f"image is {image!r}; here it is one of auto, {', '.join(_PACKAGES)}.")
        if image == "auto":
            image = "sql" if preload == "sql" else "python"
        self.limits = limits
        self.capacity = capacity
        self.spares = spares
        self.image = image
        self.preload = channel.checked_preload(preload, image)
        self.data = checked_folders(data)
        self.calls_at_once = admission(calls_at_once).places

    def fingerprint(self) -> str:
        """The interpreter, its packages, the processor's kind and the supervisor's own text."""
        ours = {"supervisor": "toolenvs.supervisor", **_OURS[self.image]}
        packages = {name: _version(name) for name in _PACKAGES[self.image]}
        packages |= {name: _text_digest(module) for name, module in ours.items()}
        if self.image == "sql":
            packages["sqlite"] = sqlite3.sqlite_version  # the machine's own library
        listed = " ".join(f"{name}={version}" for name, version in packages.items())
        return (
            f"local python={platform.python_version()} {platform.machine()} {listed} "
            f"preload={self.preload}"
        )

    async def start(self) -> ChannelWorker:
        if sys.platform != "linux":
            raise RuntimeFailure(
                "no_sandbox", "the local sandbox needs Linux: use sandbox='docker'"
            )
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                end = await Blocking(lambda: self._launch(theirs))
        except BaseException:
            ours.close()
            raise
        return await channel.open_worker(
            ours,
            limits=self.limits,
            capacity=self.capacity,
            spares=self.spares,
            gate=admission(self.calls_at_once),
            data=self.data,
            end=end,
        )

    def _launch(self, control: socket.socket) -> Callable[[], None]:
        """Start the house; return the function that sees it end."""
        for name, folder in self.data.items():
            if not Path(folder).is_dir():
                raise RuntimeFailure("data", f"There is no folder {folder} (data {name!r}).")
        number = control.fileno()
        program = channel.arguments(
            level="namespaces",
            slots=channel.slots(self.capacity, self.spares),
            control=[f"fd:{number}"],
            preload=self.preload,
        )
        plan = _plan(number, program, self._shown())
        return Companion(["house", json.dumps(plan)], [number]).end

    def _shown(self) -> list[tuple[str, str]]:
        """What a sandbox sees besides the system: pairs of a path of this machine and a place."""
        packages = [(_real(path), f"{_SITE}/{name}") for name, path in _site(self.image)]
        data = [(_real(path), f"{DATA_FOLDER}/{name}") for name, path in self.data.items()]
        return packages + data


def _plan(control: int, program: list[str], shown: list[tuple[str, str]]) -> dict[str, Any]:
    """The plan of the house.

    Args:
        control: descriptor of the control connection.
        program: arguments for Python.
        shown: see ``Local._shown``.
    """
    python, binds, hidden = _interpreter()
    binds += [("/usr", "/usr"), (_real(supervisor.__path__[0]), channel.SUPERVISOR_FOLDER)]
    binds += [(path, path) for path in (*_SYSTEM, *_FROM_ETC) if _is_plain(path)]
    binds += [(f"/dev/{name}", f"/dev/{name}") for name in _DEVICES]
    binds += shown
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
        "command": [python, *program],
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


def _site(image: str) -> Iterator[tuple[str, Path]]:
    """Each package's name there and its folder or file here, with the libraries of its wheel."""
    for name in _PACKAGES[image]:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is None:  # one file
            yield f"{name}.py", Path(str(spec.origin))
        for place in (spec.submodule_search_locations or ()) if spec else ():
            yield name, Path(place)
            libraries = Path(place).with_name(f"{name}.libs")
            if libraries.is_dir():
                yield libraries.name, libraries
    for name, module in _OURS[image].items():
        yield name, _folder_of(module)


def _folder_of(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


def _text_digest(package: str) -> str:
    """A hash of a package's source."""
    digest = hashlib.sha256()
    for path in sorted(_folder_of(package).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


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

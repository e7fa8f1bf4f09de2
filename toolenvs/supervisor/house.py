"""Build a small, read-only system without network out of namespaces and start the server in it.

For the runtime ``local``: what a container engine does for ``docker``. The plan is a JSON object:

* ``control``: the descriptor of the control connection;
* ``uid``: for a caller who is root, the unused user id to become;
* ``binds``: pairs of what to show and where; ``links``: pairs of a link and its target;
* ``files``: contents by path; ``folders``: empty folders, also over what is bound;
* ``command``, ``env``: what to start.

As root the tree is built first, then the process becomes an ordinary user; an ordinary user makes
a user namespace first. From there on both are alike: user 0 of a namespace in which nothing but
one ordinary user exists.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import system, wire

_BASE = "/tmp"  # any folder: the new root is mounted on it and then takes its place
_OLD = "/.old"
_SPACES = (
    system.CLONE_NEWNS
    | system.CLONE_NEWPID
    | system.CLONE_NEWIPC
    | system.CLONE_NEWNET
    | system.CLONE_NEWUTS
)


class MissingError(Exception):
    """The machine does not offer something; the text says what, and what to do."""


def main(arguments: list[str]) -> None:
    """Build, start and wait. What is missing is told over the control connection."""
    plan: dict[str, Any] = json.loads(arguments[0])
    control = socket.socket(fileno=plan["control"])
    try:
        _enter_spaces(plan)
        pid = os.fork()
        if pid == 0:
            _start(plan)
    except MissingError as missing:
        control.send(wire.FAILED + str(missing).encode())
        sys.exit(1)
    control.close()  # its end must show when the server ends, not when this does
    os.waitpid(pid, 0)


@contextlib.contextmanager
def _needing(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise MissingError(f"the local sandbox needs {what} ({error.strerror})") from error


def _enter_spaces(plan: dict[str, Any]) -> None:
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        with _needing("mount namespaces: run it as an ordinary user, or not in a container"):
            system.unshare(system.CLONE_NEWNS)
            _build(plan)
        uid = gid = plan["uid"]
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        system.prctl(system.PR_SET_DUMPABLE, 1)  # else the maps below belong to the old user
        _make_spaces(uid, gid)
    else:
        _make_spaces(uid, gid)
        with _needing("mounts in a user namespace"):
            _build(plan)


def _make_spaces(uid: int, gid: int) -> None:
    with _needing(
        "user namespaces: allow them with `sysctl -w kernel.unprivileged_userns_clone=1` (Debian), "
        "`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu) or "
        "`sysctl -w user.max_user_namespaces=10000`"
    ):
        system.unshare(system.CLONE_NEWUSER | _SPACES)
        system.map_ids(0, uid, gid)


def _build(plan: dict[str, Any]) -> None:
    """Make the tree and let it take the place of the machine's."""
    system.mount("none", "/", "", system.MS_REC | system.MS_PRIVATE)
    flags = system.MS_NOSUID | system.MS_NODEV
    system.mount("tmpfs", _BASE, "tmpfs", flags, "size=1m,mode=755")
    Path(_BASE + _OLD).mkdir()
    system.pivot_root(_BASE, _BASE + _OLD)
    os.chdir("/")
    for source, target in plan["binds"]:
        _bind(_OLD + source, target)
    for folder in plan["folders"]:
        if Path(folder).is_dir():
            system.mount("tmpfs", folder, "tmpfs", flags | system.MS_RDONLY, "size=4k,mode=755")
        else:
            Path(folder).mkdir(parents=True)
    for path, content in plan["files"].items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(content)
    for link, target in plan["links"]:
        Path(link).symlink_to(target)
    Path("/proc").mkdir()
    system.mount(f"{_OLD}/proc", "/proc", "", system.MS_BIND | system.MS_REC)
    system.unmount(_OLD)
    Path(_OLD).rmdir()
    system.read_only("/", deep=False)  # the children's user owns it; /proc must stay writable


def _bind(source: str, target: str) -> None:
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    if Path(source).is_dir():
        Path(target).mkdir(parents=True, exist_ok=True)
    else:
        Path(target).touch()
    system.bind(source, target)


def _start(plan: dict[str, Any]) -> None:
    """As process 1 of the new namespaces: become the server."""
    system.prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL)
    with _needing("a /proc of its own: it cannot run in a container that masks /proc"):
        flags = system.MS_NOSUID | system.MS_NODEV | system.MS_NOEXEC
        system.mount("proc", "/proc", "proc", flags)
    system.sethostname("sandbox")
    os.chdir("/")
    command = plan["command"]
    os.set_inheritable(plan["control"], True)
    os.execve(command[0], command, plan["env"])

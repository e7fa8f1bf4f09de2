"""A supervisor without some of its walls, for ``bench isolation`` alone: what does each wall cost?

It runs nothing but the bench's own payload, and no setting of a sandbox leads here. Started as a
script, as root: ``bare.py LEVEL CONTROL_FD SLOTS FOLDER``. It takes the supervisor's own modules
and leaves out what a level does not have.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import socket
import sys
from pathlib import Path
from typing import Any

LEVELS = ("fork", "limits", "walls")
"""A fork alone; then its own user id, limits and no-new-privileges; then seccomp and Landlock."""


def _supervisor(name: str) -> Any:
    return importlib.import_module(f"supervisor.{name}")


def _load_package() -> None:
    folder = str(Path(__file__).resolve().parents[1] / "supervisor")
    spec = importlib.util.spec_from_file_location(
        "supervisor", f"{folder}/__init__.py", submodule_search_locations=[folder]
    )
    assert spec is not None
    sys.modules["supervisor"] = importlib.util.module_from_spec(spec)


def _cells(level: str, number: int, folder: str) -> list[Any]:
    uid_cell = _supervisor("cells").UidCell
    first = 1_500_000_000 + os.getpid() % 1_000_000 * number

    class PlainCell(uid_cell):  # type: ignore[misc, valid-type]  # its base is loaded by name
        """A fork and nothing else."""

        def fork(self, disk_bytes: int) -> int:
            self.pid = _supervisor("system").fork()
            return int(self.pid)

        def kill(self) -> None:
            if self.pid:
                os.kill(self.pid, 9)

        def clean(self) -> bool:
            return not self.pid

    cells = []
    for n in range(number):
        place = f"{folder}/{n}"
        Path(place).mkdir(mode=0o700)
        os.chown(place, first + n, first + n)
        cells.append((PlainCell if level == "fork" else uid_cell)(first + n, place))
    return cells


def _take_down(level: str) -> None:
    if level != "walls":
        _supervisor("seccomp").restrict = lambda code: None
    if level == "fork":
        _supervisor("child").Child._put_up_walls = lambda child: os.chdir(child._folder)


def main(level: str, control_fd: str, slots: str, folder: str) -> None:
    """Serve until the control connection ends."""
    _load_package()
    server, preload = _supervisor("server"), _supervisor("preload")
    landlock, seccomp = _supervisor("landlock"), _supervisor("seccomp")
    child_module = _supervisor("child")
    control = socket.socket(fileno=int(control_fd))
    cells = _cells(level, int(slots), folder)
    _take_down(level)
    version = landlock.version() if level == "walls" else 0
    preload.load("sympy")
    child_module.settle_all()
    walls = child_module.Walls(version, seccomp.program(), preload.address_space())
    options = type("Options", (), {"level": level, "slots": int(slots)})()
    loop = server.Server(control, cells, walls)
    control.send(server.hello(options, walls, {}))
    child = loop.serve()
    del loop
    if child is not None:
        child.run()


if __name__ == "__main__":
    main(*sys.argv[1:])

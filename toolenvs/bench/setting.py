"""Where a bench ran: without it no figure means anything."""

from __future__ import annotations

import os
import platform

import msgspec

from toolenvs import engine


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """The machine and the sandbox behind a table.

    Attributes:
        cores: processors that this process may use.
        machine, kernel, python: as the platform names them.
        load: processes that were ready to run before the bench began, mean of one minute; what
            else ran on the machine shows here.
        sandbox: ``"docker"``, ``"local"`` ...
        engine: the container engine and its version, ``""`` where none is used.
    """

    cores: int
    machine: str
    kernel: str
    python: str
    load: float
    sandbox: str
    engine: str = ""


def look_around(sandbox: str) -> Setting:
    """Describe this machine; call it before the bench puts load on it."""
    return Setting(
        cores=len(os.sched_getaffinity(0)),
        machine=platform.machine(),
        kernel=f"{platform.system()} {platform.release()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        load=round(os.getloadavg()[0], 2),
        sandbox=sandbox,
        engine=engine.probe(hub=False).version if sandbox == "docker" else "",
    )

"""Try whether namespaces can be made here, and say so: for a look before a container is started."""

from __future__ import annotations

import os

from .cells import NamespaceCell
from .nursery import Nursery

WORKS = "namespaces work"
"""What is printed when they do."""
_FOLDER = "/work"


def main(arguments: list[str]) -> None:
    """Make namespaces, put a process into them, say that it worked, and end."""
    cell = NamespaceCell(_FOLDER, Nursery())
    if cell.fork(disk_bytes=4096) == 0:
        os._exit(0)
    _, status = os.waitpid(cell.pid, 0)
    if status == 0:
        os.write(1, f"{WORKS}\n".encode())

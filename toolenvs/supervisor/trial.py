"""Try whether namespaces can be made here, and say so: for a look before a container is started."""

from __future__ import annotations

import os

from .nursery import Nursery

WORKS = "namespaces work"
"""What is printed when they do."""


def main(arguments: list[str]) -> None:
    """Make namespaces, say that it worked, and end."""
    Nursery()
    os.write(1, f"{WORKS}\n".encode())

"""Memory files that bound what is written to them."""

from __future__ import annotations

import fcntl
import os


def sealed_file(size: int) -> int:
    """A memory file of ``size`` bytes that can neither grow nor shrink, as a descriptor.

    A writer beyond its end gets EPERM. Nobody else can open it, should it show in a ``/proc``.
    """
    number = os.memfd_create("output", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.fchmod(number, 0o600)
    os.ftruncate(number, size)
    seals = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
    fcntl.fcntl(number, fcntl.F_ADD_SEALS, seals)
    return number

"""Servers: what environments use, for programs that are not this one.

``search`` answers Search-R1's route ``/retrieve``. It needs the extra ``serve``.
"""

from __future__ import annotations

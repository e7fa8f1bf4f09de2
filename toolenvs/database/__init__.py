"""SQL on real databases, inside a sandbox or on the host.

Imports nothing but the standard library and SQLAlchemy, relatively, so that the folder can be put
into a sandbox under another name. ``answers`` tells what requests look like.
"""

from __future__ import annotations

from .answers import Answerer, answer
from .faults import Fault, FaultKind
from .rows import Rows
from .session import Engine, Guard, Session, Target
from .sqlite import SqliteEngine
from .values import decoded, encoded

__all__ = [
    "Answerer",
    "Engine",
    "Fault",
    "FaultKind",
    "Guard",
    "Rows",
    "Session",
    "SqliteEngine",
    "Target",
    "answer",
    "decoded",
    "encoded",
]

"""Run Python in one interpreter that keeps its variables and files for the whole episode."""

from __future__ import annotations

from toolenvs.protocols import ToolKind
from toolenvs.tools._python_output import DESCRIPTION
from toolenvs.tools.python import Python


class PythonSession(Python):
    """Run Python in the episode's own interpreter, as the cells of a notebook.

    When the interpreter dies (killed, out of memory, a time limit it did not heed) the result says
    so, the next call gets a new one, and its result says so again. Options as for ``Python``.
    """

    name = "python_session"
    description = (
        "Run Python in a session that keeps its variables and files from one call to the next. "
        + DESCRIPTION
    )
    kind: ToolKind = "stateful"

"""What a worker loads ahead changes what calls cost, and nothing that they see."""

from __future__ import annotations

import pytest

from tests.runtimes.conftest import start
from toolenvs.drivers import run
from toolenvs.errors import UnknownNameError
from toolenvs.runtimes.docker import Docker
from toolenvs.runtimes.local import Local

LOADED = {"standard": "", "numpy": "numpy", "sympy": "numpy sympy", "scipy": "numpy scipy sympy"}


@pytest.mark.local
@pytest.mark.parametrize("preload", LOADED)
def test_a_flavour_is_loaded_and_the_rest_can_be_imported(preload: str) -> None:
    """Each name is a set of modules that are there before the first call."""
    worker = start(Local(preload=preload, capacity=1, spares=0))
    sandbox = run(worker.spawn(seed=0, files={}))
    look = "import sys\nprint(*sorted({'numpy', 'scipy', 'sympy'} & set(sys.modules)))"
    assert run(sandbox.execute(look)).stdout.strip() == LOADED[preload]
    assert run(sandbox.execute("import sympy\nsympy.sqrt(8)")).stdout == "2*sqrt(2)\n"
    run(worker.stop())


@pytest.mark.local
def test_the_rehearsal_leaves_nothing_to_see() -> None:
    """The first call of a sandbox is its first: no name, no output, no line, no warning is left."""
    worker = start(Local(capacity=1))
    sandbox = run(worker.spawn(seed=0, files={}))
    fresh = run(sandbox.execute("print(sorted(globals()), '_' in dir(__builtins__))\n1/0"))
    names = "['__builtins__', '__doc__', '__loader__', '__name__', '__package__', '__spec__'] False"
    assert fresh.stdout == f"{names}\n"
    assert fresh.stderr.splitlines()[1] == '  File "<python>", line 2, in <module>'
    assert "rehearsal" not in fresh.stderr
    seen = run(
        sandbox.execute(
            "import linecache, sys\nprint(list(linecache.cache), sys.argv, sys.path[0])"
        )
    )
    assert "warm" not in seen.stdout
    assert "rehearsal" not in seen.stdout
    run(worker.stop())


def test_an_unknown_flavour_is_refused() -> None:
    """The message names those there are."""
    for runtime in (Local, Docker):
        with pytest.raises(UnknownNameError, match="sympy"):
            runtime(preload="sympi")

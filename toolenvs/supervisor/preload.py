"""What the resident interpreter loads and tries out once, so that no child pays for it."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import io
import mmap
import os
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

_STANDARD = """
abc argparse array ast asyncio base64 bisect calendar cmath codecs collections concurrent.futures
contextlib copy csv dataclasses datetime decimal difflib doctest enum fractions functools glob gzip
hashlib heapq html inspect io itertools json keyword linecache locale logging math multiprocessing
numbers operator os pathlib pickle platform pprint queue random re secrets select shutil signal
socket sqlite3 statistics string struct subprocess sys tempfile textwrap threading time timeit token
tokenize traceback types typing unicodedata unittest urllib.parse uuid warnings weakref zlib
zoneinfo
"""

_NUMPY = """
numpy numpy.linalg numpy.random numpy.fft numpy.polynomial numpy.ma numpy.testing
"""

_SYMPY = """
mpmath sympy sympy.abc sympy.solvers sympy.ntheory sympy.combinatorics sympy.geometry sympy.stats
sympy.parsing.sympy_parser sympy.utilities.lambdify sympy.physics.units
"""

_SCIPY = """
scipy scipy.linalg scipy.optimize scipy.integrate scipy.special scipy.stats scipy.interpolate
scipy.sparse scipy.spatial scipy.signal scipy.fft
"""

_SQL = """
sqlalchemy sqlalchemy.dialects.sqlite toolenvs_database
"""

MODULES: Mapping[str, str] = {
    "standard": _STANDARD,
    "numpy": _STANDARD + _NUMPY,
    "sympy": _STANDARD + _NUMPY + _SYMPY,
    "scipy": _STANDARD + _NUMPY + _SYMPY + _SCIPY,
    "sql": _STANDARD + _SQL,
}
"""What each flavour loads. Whatever is installed can be imported in all of them; what was loaded
costs the code nothing, but memory once, and each fork the copy of its page tables."""

_REQUIRED = ("toolenvs_database",)  # a flavour that lacks it would be of no use

_REHEARSAL = (
    "print(sum([1, 2]) / 3, f'{2.5:.1f}', {'a': (1,)})",
    "def f(x): return x / 0\nf(1)",
    "import numpy\nm = numpy.ones((50, 50))\nprint((m @ m).sum(), numpy.linalg.inv(numpy.eye(3)))",
    "import numpy\nnumpy.random.seed(1)",
    "import sympy\nx = sympy.symbols('x')\nprint(sympy.solve(x**2 - 3*x + 2, x))\n"
    "print(sympy.simplify((x**2 - 1)/(x - 1)), sympy.factor(x**2 - 1), sympy.diff(x**3, x))\n"
    "print(sympy.integrate(x**2, x), sympy.sqrt(8), sympy.N(sympy.pi), sympy.Rational(1, 3))\n"
    "print(sympy.Matrix([[1, 2], [3, 4]]).det(), sympy.isprime(97), sympy.factorint(60))",
    "import sqlalchemy\nengine = sqlalchemy.create_engine('sqlite://')\n"
    "with engine.connect() as connection:\n"
    "    connection.execute(sqlalchemy.text('CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)'))\n"
    "    print(connection.execute(sqlalchemy.text('SELECT * FROM t')).all())\n"
    "    print(sqlalchemy.inspect(connection).get_columns('t'))\n"
    "engine.dispose()",
)
_MADV_HUGEPAGE, _MADV_COLLAPSE = 14, 25
_HUGE = 2 << 20
_PLUGS: list[object] = []
_PLUG_BYTES = 64 << 10  # for each of Python's 32 sizes of small objects


def load(flavour: str) -> dict[str, str]:
    """Import everything of a flavour that is there and settle the heap for forking.

    Returns:
        The versions of the packages that were found.

    Raises:
        ImportError: One without which the flavour is of no use is missing.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in MODULES[flavour].split():
            try:
                importlib.import_module(name)
            except ImportError:
                if name in _REQUIRED:
                    raise
        hot = _codes_of(_rehearse)
    gc.collect()
    _plug_holes()
    _gather(hot)
    _rehearse()
    gc.collect()
    gc.freeze()
    gc.disable()
    _collapse()
    packages = (sys.modules.get(name) for name in ("numpy", "scipy", "sympy", "sqlalchemy"))
    return {m.__name__: str(m.__version__) for m in packages if m is not None}


def _rehearse() -> None:
    """Run what code usually does, so that caches are filled here and not in each child.

    A child's first ``sympy.solve`` takes a third of the time, and of the memory, that it takes
    without. Nothing of it can be seen afterwards: random streams are seeded in the child.
    """
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        for code in _REHEARSAL:
            package = code.partition("\n")[0].removeprefix("import ")
            if code.startswith("import ") and package not in sys.modules:
                continue
            try:
                exec(compile(code, "<rehearsal>", "exec"), {"__name__": "rehearsal"})
            except Exception:
                traceback.print_exc()


def _codes_of(action: Callable[[], None]) -> dict[int, types.CodeType]:
    """All code that an action runs, by its id."""
    found: dict[int, types.CodeType] = {}

    def note(frame: types.FrameType, event: str, argument: object) -> None:
        if event == "call":
            found[id(frame.f_code)] = frame.f_code

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return found


def _gather(hot: Mapping[int, types.CodeType]) -> None:
    """Lay the code that is often run side by side, by giving functions copies of it.

    To run code is to count a reference in it, so a child copies each page on which there is some.
    Where a module's loading has put it, there is much between that is never run. The originals
    stay: the gaps that they would leave cost what ``_plug_holes`` is to save.
    """
    _PLUGS.extend(hot.values())
    copies: dict[int, types.CodeType] = {}
    for function in gc.get_objects():
        if type(function) is types.FunctionType and id(function.__code__) in hot:
            code = function.__code__
            copies[id(code)] = copies.get(id(code)) or code.replace()
            function.__code__ = copies[id(code)]


def _plug_holes() -> None:
    """Fill the gaps of the heap, so that a child's own objects share few pages with old ones.

    Python puts a small object into the first gap of its size; each gap that a child fills costs it
    the copy of a page.
    """
    for size in range(48, 513, 16):
        _PLUGS.extend(bytes(size - 33) for _ in range(_PLUG_BYTES // size))
    _PLUGS.extend(float(number) for number in range(_PLUG_BYTES // 32))


def _collapse() -> None:
    """Put the heap on huge pages where the kernel can.

    Forks copy page tables, which this makes smaller by a factor of 512. Only speed depends on it,
    so every failure is ignored.
    """
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/maps").read_text().splitlines():
            fields = line.split()
            private = fields[1] == "rw-p" and (len(fields) == 5 or fields[5] == "[heap]")
            low, high = (int(end, 16) for end in fields[0].split("-"))
            low, high = -(-low // _HUGE) * _HUGE, high // _HUGE * _HUGE
            if private and low < high:
                madvise(low, high - low, _MADV_HUGEPAGE)
                madvise(low, high - low, _MADV_COLLAPSE)


def address_space() -> int:
    """Bytes of address space that this process has taken."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * mmap.PAGESIZE


def threads() -> int:
    """How many threads this process has; more than one must not be forked."""
    return sum(1 for _ in os.scandir("/proc/self/task"))

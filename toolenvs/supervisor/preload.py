"""What the resident interpreter loads once, so that no child pays for it."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import mmap
import os
import sys
import warnings
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

_NUMERIC = """
numpy numpy.linalg numpy.random numpy.fft numpy.polynomial numpy.ma numpy.testing
mpmath sympy sympy.abc sympy.solvers sympy.ntheory sympy.combinatorics sympy.geometry sympy.stats
sympy.parsing.sympy_parser sympy.utilities.lambdify sympy.physics.units
scipy scipy.linalg scipy.optimize scipy.integrate scipy.special scipy.stats scipy.interpolate
scipy.sparse scipy.spatial scipy.signal scipy.fft
"""

_MADV_HUGEPAGE, _MADV_COLLAPSE = 14, 25
_HUGE = 2 << 20


def load() -> dict[str, str]:
    """Import everything that is there and settle the heap for forking.

    Returns:
        The versions of the numeric packages that were found.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in (_STANDARD + _NUMERIC).split():
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    gc.collect()
    gc.freeze()
    gc.disable()
    _collapse()
    packages = (sys.modules.get(name) for name in ("numpy", "scipy", "sympy"))
    return {m.__name__: str(m.__version__) for m in packages if m is not None}


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

"""Addresses of objects in what Python printed: numbered, since they differ from run to run.

``<A object at 0x7f3a5c1b2d90>`` becomes ``<A object at 0x1>``, the next object's ``0x2``: numbers
in the order in which a result shows the addresses first. So a result tells as before whether two
objects are one, and is the same in every sandbox, on every machine and in a replay. It is done to
the text, not by fixing the layout of memory: engines do not let a container switch its
randomisation off, and after a fork addresses would still depend on what the worker did before.

Only the forms in which Python and numpy write an address are touched; a hexadecimal number that
the code itself has made, and one in any other place, stays.
"""

from __future__ import annotations

import re

import msgspec

from toolenvs.types import ExecResult

# Shorter numbers are no addresses of objects on any machine with 64 bits.
_SHOWN = re.compile(
    r"""
    (?<=[ ]at[ ]0x) ( [0-9a-f]{6,16} )
    (?= >                               # <A object at 0x...>
      | ,[ ]file[ ]                     # <code object f at 0x..., file "<python>", line 1>
      | ,[ ]line[ ]\d+>                 # the same without its file
      | ;[ ](?:to[ ]'|dead>)            # <weakref at 0x...; to 'A' at 0x...>
      | :[ ](?:empty>|\S+[ ]object[ ]at[ ]0x)   # <cell at 0x...: int object at 0x...>
      | :[ ](?:(?:un)?set>|broken>|\w+=)        # <threading.Event at 0x...: unset>
      | [ ](?:state|maxsize)=           # <Future at 0x... state=finished returned int>
      | [ ]to[ ]\S+[ ]at[ ]0x           # <weakproxy at 0x... to A at 0x...>
      | [ ]\[                           # <asyncio.locks.Lock object at 0x... [unlocked]>
    )
    | (?<=\)[ ]at[ ]0x) ( [0-9A-F]{6,16} ) \b  # Generator(PCG64) at 0x..., as numpy writes
    | (?<=[ ]handle[ ]) ( [0-9a-f]{6,16} ) (?=[ ]at[ ]0x)  # <CDLL 'm', handle ... at 0x...>
    | (?: (?<=,[ ]started[ ]) | (?<=,[ ]started[ ]daemon[ ]) ) ( \d{9,20} ) (?=\)>)  # threads
    | (?<=[ ]id=') ( \d{9,20} ) (?='>)  # <Mock id='...'>
    """,
    re.VERBOSE,
)
_MARKS = (" at 0x", ", started ", " id='")  # one of them stands in whatever is touched
_TORN = re.compile(r"(?<= at 0x)[0-9a-fA-F]+\Z")


def with_stable_addresses(result: ExecResult) -> ExecResult:
    """The same end of an execution, with the addresses in its output numbered from 1 on.

    What follows an ``at 0x`` at the very end of output that was cut goes: it is part of one.
    """
    numbers: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        return f"{numbers.setdefault(found[0].lower(), len(numbers) + 1):x}"

    def stable(text: str) -> str:
        if not any(mark in text for mark in _MARKS):
            return text
        text = _SHOWN.sub(number, text)
        return _TORN.sub("", text) if result.output_cut else text

    return msgspec.structs.replace(
        result, stdout=stable(result.stdout), stderr=stable(result.stderr)
    )

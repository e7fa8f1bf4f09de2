"""What travels between the client, the supervisor and a sandbox's child: layouts and numbers.

Three kinds of socket, none shared by two sandboxes:

* control (client and supervisor, packets): ``WELCOME`` where the supervisor connected to a path,
  ``HELLO`` or ``FAILED`` once, then ``SPAWN`` messages, each with four descriptors. Its end of
  file ends the supervisor and everything in it.
* slot (client and supervisor, packets, one for each sandbox): one-letter requests and answers.
* data (client and child, a stream, one for each sandbox): ``REQUEST`` and payload one way,
  ``REPLY`` the other. The supervisor never reads it.
"""

from __future__ import annotations

import struct

VERSION = 5

WELCOME = b"W"
"""The client's first packet, with any one descriptor: it shows that descriptors can be passed."""

HELLO = b"H"
"""First letter of the supervisor's first packet; JSON follows: see ``server.hello``."""
FAILED = b"E"
"""Instead of ``HELLO``, or as the last packet before a crash; UTF-8 text follows."""

SPAWN = struct.Struct("!QQQQ")
"""Control, client to supervisor: memory_bytes, processes, file_bytes, disk_bytes.

Descriptors with it, in this order: the child's end of data, stdout, stderr, the supervisor's end
of slot.
"""

BEGIN = b"b"
"""Slot, to the supervisor: count what the sandbox uses from here. No answer."""
USAGE = b"u"
"""Slot, to the supervisor: how much has the sandbox used since ``BEGIN``? Answer: ``USED``."""
INTERRUPT = b"i"
"""Slot, to the supervisor: SIGINT to the child, SIGKILL to all else in the sandbox; answered by
the same letter once both are sent."""
KILL = b"k"
"""Slot, to the supervisor: SIGKILL to everything in the sandbox. Answer: ``DIED``, in time."""

MAY_FORK = b"f"
"""Slot, to the supervisor: is there nothing in the sandbox but its child, which has no thread, no
file and no memory that a fork of it would share? Answer: ``YES_OR_NO``."""
ADOPT = b"a"
"""Slot, to the supervisor, with descriptors as ``SPAWN``: the child has forked, take its branch for
a sandbox of its own. Answer: ``YES_OR_NO``."""
IS_SOUND = b"s"
"""Slot, to the supervisor, about a branch: is all that it shares with others as it was when it was
forked? Answer: ``YES_OR_NO``."""

YES_OR_NO = struct.Struct("!c?")
"""The question's letter and the answer."""

USED = struct.Struct("!cQQQI?")
"""Letter ``u``; ns since ``BEGIN`` was heard, without those in which everything was frozen;
processor ns of all processes; ns that its most delayed task was ready but waited for a processor;
number of processes; whether the machine may have killed one of them for lack of memory."""

DEATH = b"d"
DIED = struct.Struct("!ciBQ")
"""``DEATH``; status as ``wait4`` gives it; bits that say why; processor ns."""
BY_US = 1
"""The supervisor killed it."""
OUT_OF_MEMORY = 2
"""It held more than it may."""
NOBODYS_FAULT = 4
"""The machine had no memory left, and it held no more than it may."""

REQUEST = struct.Struct("!IB8s")
"""Data, to the child: length of the payload in bytes, operation, nonce."""
SETUP = 1
"""Payload: a JSON object of ``seed`` (an integer), ``data`` (a list of places to read) and ``now``
(where the clock begins, in ns since 1970; null for the real clock), a zero byte, then for each
file ``FILE``, its name, its content. Once, before any ``RUN``."""
RUN = 2
"""Payload: the code, UTF-8 (lone surrogates pass)."""
FORK = 3
"""No payload, but one more byte with three descriptors: the branch's end of data, its stdout and
its stderr. Answered by the child, and with the same nonce by the branch on a socket of its own."""
FILE = struct.Struct("!II")

REPLY = struct.Struct("!8sBB")
"""Data, from the child: the request's nonce, status, exit code."""

OK = 0
RAISED = 1
EXITED = 2
INTERRUPTED = 3
NO_MEMORY = 4
NO_DISK = 5
NO_PROCESSES = 6
TOO_MUCH_OUTPUT = 7

NO_BRANCH = 11
"""Answer to ``FORK`` only: it cannot be done here."""

NO_PLACE = 8
"""Answers to ``SETUP`` only, with the number of the place in ``data`` as the exit code: there is no
such file or folder,"""
PLACE_OUTSIDE = 9
"""it leads out of its data folder,"""
PLACE_CLOSED = 10
"""or the sandbox's user may not read it."""

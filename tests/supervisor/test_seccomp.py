"""The filter of system calls, read by a small interpreter of its instructions."""

from __future__ import annotations

import errno
import struct

import pytest

from toolenvs.supervisor import seccomp, system

ARM = system.ARM
ALLOW = 0x7FFF0000
EPERM = 0x00050000 | errno.EPERM
ENOSYS = 0x00050000 | errno.ENOSYS
ARCHITECTURE = 0xC00000B7 if ARM else 0xC000003E


def decide(number: int, *arguments: int, architecture: int = ARCHITECTURE) -> int:
    """What the kernel would answer to a call."""
    wide = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number, architecture, 0, *wide)
    code = seccomp.program()
    place, register = 0, 0
    while True:
        op, yes, no, operand = struct.unpack_from("=HBBI", code, place * 8)
        place += 1
        if op == 0x06:
            return int(operand)
        if op == 0x20:
            register = struct.unpack_from("=I", data, operand)[0]
        elif op == 0x54:
            register &= operand
        else:
            holds = {0x15: register == operand, 0x35: register >= operand}
            place += yes if holds.get(op, bool(register & operand)) else no


@pytest.mark.parametrize("name", sorted(seccomp.REFUSED))
def test_each_listed_call_is_refused(name: str) -> None:
    """Every call of the table that this processor has gets EPERM."""
    number = seccomp.REFUSED[name][int(ARM)]
    if number >= 0:
        assert decide(number) == EPERM


def test_ordinary_calls_pass() -> None:
    """Reading, writing, memory, forking and waiting are untouched."""
    common = (63, 64, 222, 260, 221) if ARM else (0, 1, 9, 61, 59)
    assert {decide(number) for number in common} == {ALLOW}


def test_namespaces_are_refused_by_clone() -> None:
    """A fork passes, a fork into new namespaces does not, the call with hidden flags is absent."""
    clone = 220 if ARM else 56
    assert decide(clone, 0x1200011) == ALLOW
    assert decide(clone, system.CLONE_NEWUSER | 17) == EPERM
    assert decide(435) == ENOSYS


def test_calls_that_nobody_judged_are_missing() -> None:
    """What a newer kernel adds is not there, as on the kernel that the table is of."""
    assert {decide(number) for number in (463, 467, 999)} == {ENOSYS}
    assert decide(462) == ALLOW


def test_socket_pairs_are_streams_or_nothing() -> None:
    """Datagram sockets could be named and sent to by other sandboxes."""
    socketpair = 199 if ARM else 53
    close_on_exec = 0x80000
    assert decide(socketpair, 1, 1 | close_on_exec) == ALLOW
    assert decide(socketpair, 1, 2 | close_on_exec) == EPERM


def test_other_instruction_sets_are_refused() -> None:
    """Neither 32-bit calls nor the x32 twins of calls get through."""
    assert decide(1, architecture=0x40000003) == EPERM
    assert decide(0x40000000 | 41) == EPERM

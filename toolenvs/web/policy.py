"""Which addresses an agent may be taken to: the public web, and nothing of this network.

A name is judged by what it resolves to, at the moment of connecting, and the connection goes to the
very address that was judged: a name that resolves otherwise a moment later (DNS rebinding) wins
nothing.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.web.faults import AgentFaultError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NEVER = tuple(
    ipaddress.ip_network(text)
    for text in (
        "168.63.129.16/32",  # Azure's wire server: a public number that is always this host's
        "192.0.0.0/24",  # of which two numbers count as global; a cloud keeps metadata there
        "192.88.99.0/24",  # relays from 6to4
        "2001::/23",  # Teredo, ORCHID: each carries another address inside
        "2002::/16",  # 6to4: likewise
        "3fff::/20",  # for documentation (RFC 9637)
        "64:ff9b::/96",  # NAT64: likewise
        "64:ff9b:1::/48",
        "::/96",
        "fec0::/10",
    )
)
_MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")
_KNOWN_NAME = "example.com"  # where names can be resolved at all, this one can (RFC 2606)
_KNOWN_ROUTES = ("198.41.0.4", "2001:503:ba3e::2:30")  # a root name server, by either protocol
_RESOLVER = (socket.EAI_AGAIN, socket.EAI_FAIL, socket.EAI_MEMORY, socket.EAI_SYSTEM)


class NetworkPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Where a page may be fetched from.

    Refused are private, loopback, link-local, multicast and reserved addresses, those that carry
    another address inside, clouds' metadata services, and every address of this machine.

    Attributes:
        ports: the ports that may be connected to.
        allow: networks and addresses that are let through whatever they are, on any port, such as
            ``("10.1.2.0/24",)`` for a site of one's own. Whoever is allowed here can be reached by
            the agent.

    Raises:
        UsageError: An entry of ``allow`` is no network.
    """

    ports: tuple[int, ...] = (80, 443, 8080, 8443)
    allow: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for text in self.allow:
            try:
                _network(text)
            except ValueError as error:
                raise UsageError(
                    f"allow: {text!r} is no network: {error}. Write 10.1.2.0/24 or 10.1.2.3."
                ) from None

    def addresses(self, host: str, port: int, *, timeout_s: float) -> list[str]:
        """Resolve ``host`` and return the numbers to connect to, every one of them judged.

        Raises:
            AgentFaultError: It has no address, or one that is refused.
            RuntimeFailure: Names cannot be resolved here.
        """
        found = _resolved(host, port, timeout_s)
        for text in found:
            why = self.refusal(text, port)
            if why:
                raise AgentFaultError("refused", f"{host!r} cannot be opened: {why}.")
        return found

    def refusal(self, text: str, port: int) -> str:
        """Say why a numeric address may not be connected to, ``""`` if it may."""
        address = ipaddress.ip_address(text.partition("%")[0])
        inner = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        address = inner or address
        if any(address in _network(text) for text in self.allow):
            return ""
        if not _is_public(address) or _is_own(address):
            return "its address is not on the public internet"
        if port not in self.ports:
            return f"port {port} is not among {', '.join(map(str, self.ports))}"
        return ""


@lru_cache(maxsize=256)
def _network(text: str) -> Network:
    """Read a network; one of IPv4 numbers written as IPv6 (``::ffff:10.1.2.3``) is that of IPv4.

    Raises:
        ValueError: It is none.
    """
    network = ipaddress.ip_network(text)
    if isinstance(network, ipaddress.IPv6Network) and network.subnet_of(_MAPPED):
        inner = network.network_address.ipv4_mapped
        return ipaddress.IPv4Network((str(inner), network.prefixlen - _MAPPED.prefixlen))
    return network


def _is_public(address: Address) -> bool:
    special = address.is_multicast or address.is_reserved or address.is_link_local
    return address.is_global and not special and not any(address in net for net in _NEVER)


def _is_own(address: Address) -> bool:
    """Tell whether the address is one of this machine's: only those can be bound."""
    return _can_bind(str(address)) and not _binds_anything()


@lru_cache(maxsize=1)
def _binds_anything() -> bool:
    """Whether this kernel binds addresses that are not its own (``ip_nonlocal_bind``)."""
    return _can_bind("192.0.2.1")  # for documentation: nobody's (RFC 5737)


def has_route() -> bool:
    """Tell whether this machine has a way to the public internet; nothing is sent."""
    return any(map(_knows_way_to, _KNOWN_ROUTES))


def _knows_way_to(text: str) -> bool:
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((text, 53))  # of a datagram socket: it only looks the route up
    except OSError:
        return False
    return True


def _can_bind(text: str) -> bool:
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((text, 0))
    except OSError:
        return False
    return True


def _resolved(host: str, port: int, timeout_s: float) -> list[str]:
    """The addresses of a name, in the resolver's order."""
    began = time.monotonic()
    found = _looked_up(host, port, timeout_s)
    if found is None:
        raise AgentFaultError("timeout", f"{host!r} was not found in time.")
    broken = isinstance(found, socket.gaierror) and found.errno in _RESOLVER
    # A name whose servers are broken looks the same, and an agent may have chosen it.
    if broken and not _resolves_known_name(timeout_s - (time.monotonic() - began)):
        problem = f"names cannot be resolved here: {found}"
        raise RuntimeFailure("network", problem, reason="names cannot be resolved")
    if isinstance(found, Exception):
        raise AgentFaultError("bad_arguments", f"there is no host called {host[:100]!r}.")
    return list(dict.fromkeys(str(info[4][0]) for info in found))


def _resolves_known_name(timeout_s: float) -> bool:
    """Whether names can be resolved here; one that gives no answer in time proves nothing."""
    known = _looked_up(_KNOWN_NAME, 443, timeout_s)
    return known is None or isinstance(known, list)


def _looked_up(host: str, port: int, timeout_s: float) -> Sequence[Any] | Exception | None:
    """What ``getaddrinfo`` says, which itself knows no limit of time; None: nothing yet."""
    outcome: list[Sequence[Any] | Exception] = []

    def work() -> None:
        try:
            outcome.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            outcome.append(error)

    thread = threading.Thread(target=work, name="toolenvs-resolve", daemon=True)
    thread.start()
    thread.join(max(0.0, timeout_s))
    return outcome[0] if outcome else None

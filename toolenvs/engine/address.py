"""Where container engines listen on this machine."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import Any


def addresses() -> Iterator[dict[str, Any]]:
    """Client options for each place where an engine may listen, best first."""
    from docker.utils import kwargs_from_env

    if os.environ.get("DOCKER_HOST"):
        yield kwargs_from_env()
        return
    seen = set()
    for options in [*_context(), *({"base_url": f"unix://{path}"} for path in _sockets())]:
        if options["base_url"] not in seen:
            seen.add(options["base_url"])
            yield options


def _context() -> list[dict[str, Any]]:
    """The context that the ``docker`` command uses, when it is not the default one."""
    from docker.context import ContextAPI

    try:
        context = ContextAPI.get_context(os.environ.get("DOCKER_CONTEXT"))
    except Exception:  # a damaged file of another program; docker-py raises anything
        return []
    if context is None or context.Name == "default" or not context.Host:
        return []
    secured = {"tls": context.TLSConfig} if context.TLSConfig else {}
    return [{"base_url": context.Host, **secured}]


def _sockets() -> list[str]:
    run = os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
    return [
        "/var/run/docker.sock",
        f"{run}/docker.sock",
        f"{run}/podman/podman.sock",
        "/run/podman/podman.sock",
    ]


def unreachable(where: str) -> str:
    """Why a local socket cannot be used, found out without docker-py; ``""`` when it can."""
    if not where.startswith(("unix://", "http+unix://")):
        return ""
    path = "/" + where.partition("://")[2].lstrip("/")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
        trial.settimeout(1.0)
        try:
            trial.connect(path)
        except FileNotFoundError:
            return "no such socket"
        except PermissionError:
            return "permission denied"
        except OSError as error:
            return error.strerror or str(error)
    return ""

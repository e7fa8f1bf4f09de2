"""Plugins: one file for each; ``names()`` lists them, ``make(name)`` builds one."""

from __future__ import annotations

from toolenvs.protocols import Runtime
from toolenvs.registry import Registry

registry: Registry[Runtime] = Registry("a sandbox", __name__)
register = registry.register
names = registry.names
get = registry.get
make = registry.make

"""Plugins: one file for each; ``names()`` lists them, ``make(name)`` builds one."""

from __future__ import annotations

from toolenvs.protocols import Tool
from toolenvs.registry import Registry

registry: Registry[Tool] = Registry("a tool", __name__)
register = registry.register
names = registry.names
get = registry.get
make = registry.make

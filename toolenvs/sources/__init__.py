"""Plugins: one file for each; ``names()`` lists them, ``make(name)`` builds one."""

from __future__ import annotations

from toolenvs.protocols import TaskSource
from toolenvs.registry import Registry
from toolenvs.sources._gold import why_unusable as why_unusable

registry: Registry[TaskSource] = Registry("a task source", __name__, aliases={"2wiki": "twowiki"})
register = registry.register
names = registry.names
get = registry.get
make = registry.make

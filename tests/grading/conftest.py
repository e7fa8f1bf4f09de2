"""Settings of the property tests here: no promise depends on a clock."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("no_clock", deadline=None)
settings.load_profile("no_clock")

"""Start the supervisor: ``python3 -s -P boot.py serve|nest|house|near|trial ARGUMENTS``."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

_folder = str(Path(__file__).resolve().parent)
_spec = importlib.util.spec_from_file_location(
    "supervisor", f"{_folder}/__init__.py", submodule_search_locations=[_folder]
)
assert _spec is not None
sys.modules["supervisor"] = importlib.util.module_from_spec(_spec)
_programs = {
    "serve": "server",
    "nest": "nest",
    "house": "house",
    "near": "near",
    "trial": "trial",
}
importlib.import_module(f"supervisor.{_programs[sys.argv[1]]}").main(sys.argv[2:])

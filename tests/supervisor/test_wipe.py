"""A folder is emptied whatever is in it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolenvs.supervisor import wipe

NAMES = st.sampled_from(["a", "b", "1.", "2.", "-", " ", "\n", "é", ".hidden"])
KINDS = st.sampled_from(["file", "folder", "closed", "link", "pipe"])
ENTRIES = st.lists(st.tuples(st.lists(NAMES, min_size=1, max_size=5), KINDS), max_size=12)


def plant(folder: Path, parts: list[str], kind: str) -> None:
    """Make one entry; what is in the way stays."""
    path = folder.joinpath(*parts)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "file":
            path.touch(exist_ok=False)  # opening a pipe that is there would wait
        elif kind == "link":
            path.symlink_to(folder.parent)
        elif kind == "pipe":
            os.mkfifo(path)
        else:
            path.mkdir()
            path.chmod(0 if kind == "closed" else 0o755)
    except OSError:
        pass


@given(entries=ENTRIES)
@settings(max_examples=60, deadline=None)
def test_any_tree_is_removed(entries: list[tuple[list[str], str]]) -> None:
    """Closed folders, links, pipes and odd names go; the folder itself stays."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "work"
        folder.mkdir()
        outside = Path(parent) / "outside"
        outside.write_text("kept")
        for parts, kind in entries:
            plant(folder, parts, kind)
        wipe.empty(str(folder))
        assert list(folder.iterdir()) == []
        assert outside.read_text() == "kept"


def test_depth_costs_nothing(tmp_path: Path) -> None:
    """A path far longer than the system allows is removed without recursion."""
    here = os.open(tmp_path, os.O_RDONLY)
    first = here
    for _ in range(1500):
        os.mkdir("d" * 40, dir_fd=here)
        inner = os.open("d" * 40, os.O_RDONLY, dir_fd=here)
        if here != first:
            os.close(here)
        here = inner
    os.close(here)
    os.close(first)
    wipe.empty(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    """The folder to empty is never reached through a link."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("x")
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(OSError, match="link"):
        wipe.empty(str(tmp_path / "link"))
    assert (tmp_path / "real" / "file").exists()

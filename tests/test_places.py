"""Places of data: what can name one, and how a wrong one is explained."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolenvs.errors import RuntimeFailure, UnknownNameError, UsageError
from toolenvs.places import checked_folders, checked_places, refusal
from toolenvs.supervisor import wire


@given(
    place=st.lists(st.sampled_from(["a", "..", ".", "", "b c", "ü", "a\0"]), max_size=5).map(
        "/".join
    )
)
def test_a_place_stays_below_the_data(place: str) -> None:
    """For any path: it is refused, or it is relative, without a step up, and says the same."""
    try:
        (found,) = checked_places([place])
    except UsageError:
        return
    parts = found.split("/")
    assert not {"", "..", "."} & set(parts)
    assert parts == [part for part in place.split("/") if part not in ("", ".")]


def test_a_place_in_no_folder_is_named_with_the_nearest() -> None:
    """The message lists the folders that the worker shows."""
    with pytest.raises(UnknownNameError, match="Did you mean 'spider'"):
        checked_places(["spidre/x"], {"spider": "/srv"})
    with pytest.raises(UnknownNameError, match="Known: none"):
        checked_places(["spider/x"], {})


def test_a_text_and_too_many_places_are_refused() -> None:
    """A text would be taken letter by letter; a sandbox tells by one byte which place is wrong."""
    with pytest.raises(UsageError, match="sequence of places"):
        checked_places("spider/x")
    with pytest.raises(UsageError, match="name a folder"):
        checked_places(["a/b"] * 256)
    assert len(checked_places(["a/b"] * 255)) == 255


def test_folders_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that changes its folder, or is copied to another process, shows the same data."""
    monkeypatch.chdir(tmp_path)
    assert checked_folders({"d": "here", "e": tmp_path}) == {
        "d": str(tmp_path / "here"),
        "e": str(tmp_path),
    }
    assert checked_folders(None) == {}


@pytest.mark.parametrize(
    ("closed", "mode", "advice"),
    [
        (".", 0o700, "chmod o+x {}"),
        ("a", 0o750, "chmod o+x {}/a"),
        ("a/b.sqlite", 0o640, "chmod o+r {}/a/b.sqlite"),
    ],
)
def test_what_is_closed_is_named(tmp_path: Path, closed: str, mode: int, advice: str) -> None:
    """The first folder or file on the way that others cannot pass or read, and the command."""
    (tmp_path / "a").mkdir(mode=0o755)
    (tmp_path / "a" / "b.sqlite").touch(mode=0o644)
    tmp_path.chmod(0o755)
    (tmp_path / closed).chmod(mode)
    told = refusal(wire.PLACE_CLOSED, "d/a/b.sqlite", {"d": str(tmp_path)})
    assert isinstance(told, RuntimeFailure)
    assert told.kind == "data"
    assert str(told).endswith(advice.format(tmp_path) + ".")


def test_what_is_closed_elsewhere_is_guessed() -> None:
    """The engine's machine may be another one: then the command is for all of the folder."""
    told = str(refusal(wire.PLACE_CLOSED, "d/a", {"d": "/no/such/folder"}))
    assert "chmod -R o+rX /no/such/folder" in told

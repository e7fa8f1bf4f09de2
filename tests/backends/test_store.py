"""Passages on disk: each once, found by its place, id or URL."""

from __future__ import annotations

import pytest

from toolenvs.backends._store import open_store
from toolenvs.corpora import JoinedCorpora, Passages
from toolenvs.errors import DataError
from toolenvs.types import Passage

from .passages import CITIES, Counted


def test_a_store_holds_every_passage_once() -> None:
    """By place and by id; one that stands there twice is kept once."""
    store = open_store(JoinedCorpora([Passages(CITIES), Passages(CITIES[1:3]), Passages([])]))
    assert list(store) == list(CITIES)
    assert all(store.find(passage.id) == passage for passage in CITIES)


def test_an_id_goes_before_a_url() -> None:
    """A page whose URL is another's id does not hide it; of equal URLs the first counts."""
    passages = [
        Passage(id="a", title="", text="1", url="b"),
        Passage(id="b", title="", text="2", url="c"),
        Passage(id="d", title="", text="3", url="c"),
    ]
    store = open_store(Passages(passages))
    found = [store.find(name) for name in ("a", "b", "c", "d", "e")]
    assert [one and one.text for one in found] == ["1", "2", "2", "3", None]


def test_a_passage_without_an_id_is_refused() -> None:
    """None could open it."""
    with pytest.raises(DataError, match="has no id"):
        open_store(Counted([Passage(id="", title="", text="x")]))

"""The cache on PostgreSQL: the same promises, with a server that the test starts itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cache.making import make_key, result, run_writers
from toolenvs.cache import ReplayCache
from toolenvs.errors import RuntimeFailure


def test_a_server_keeps_what_a_file_keeps(postgres: str, tmp_path: Path) -> None:
    """Results, marks, healing, collisions, runtimes, counts, pruning and exports."""
    with ReplayCache(postgres) as cache:
        for number in range(20):
            cache.put(make_key(number), result(f"{number}\u2028\x00"))
        cache.put(make_key("late"), result("late"), servable=False)
        cache.flush()
        cache.put(make_key("late"), result("in time"))
        cache.put(make_key(3), result("other"))
        cache.see_runtime({"sandbox": "docker"}, {"fingerprint": "f"})
        cache.flush()
        three, late = cache.get(make_key(3)), cache.get(make_key("late"))
        assert three is not None
        assert (three.result.text, three.differing) == ("3\u2028\x00", True)
        assert late is not None
        assert (late.result.text, late.servable) == ("in time", True)
        assert cache.get(make_key("never")) is None
        assert cache.seen_runtimes({"sandbox": "docker"}) == [{"fingerprint": "f"}]
        assert (cache.stats().entries, cache.stats().differing) == (21, 1)
        assert "arguments.code" in cache.explain_miss(make_key("never"))
        assert cache.export_to(tmp_path / "out.jsonl").entries == 21
        assert cache.prune(max_bytes=0) == 21
        assert cache.import_from(tmp_path / "out.jsonl").entries == 21
        cache.export_to(tmp_path / "again.jsonl")
        assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "out.jsonl").read_bytes()
        assert cache.prune(max_age_s=0) == 21


def test_many_processes_share_a_server(postgres: str) -> None:
    """Every put is stored once; none raises. All of them make the tables at the same time."""
    run_writers(postgres, writers=4, puts=60)
    with ReplayCache(postgres) as cache:
        assert (cache.stats().entries, cache.lost) == (4 * 60 + 60, 0)


def test_a_server_that_is_not_there_is_a_failure_of_the_machine() -> None:
    """It is told with its address and without its password."""
    pytest.importorskip("psycopg")
    with pytest.raises(RuntimeFailure, match=r"nowhere\.invalid") as raised:
        ReplayCache("postgresql+psycopg://me:secret@nowhere.invalid/x").open()
    assert "secret" not in str(raised.value)

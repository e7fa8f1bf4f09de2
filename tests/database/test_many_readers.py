"""Many episodes read one file at once."""

from __future__ import annotations

import json
import multiprocessing
import sqlite3
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

from tests.database.ground import Ground
from toolenvs.database import Answerer, SqliteEngine

SQL = "SELECT city, count(*) FROM emp GROUP BY city ORDER BY city"


def read_often(folder: str, times: int = 20) -> list[str]:
    """Answers of one episode, whose sessions are opened anew in between."""
    answers = []
    for number in range(times):
        if number % 5 == 0:
            answerer = Answerer({"sqlite": SqliteEngine(folder)})
        database = {"place": "emp.sqlite", "writable": number % 5 == 4}
        request = {"op": "query", "database": database, "sql": SQL}
        answers.append(answerer.answer(json.dumps(request)))
        if number % 5 == 4:
            answerer.close()
    return answers


def test_32_threads_and_4_processes_read_one_file(tmp_path: Path) -> None:
    """All answers are right: none is locked out, whatever the others do."""
    ground = Ground(tmp_path)
    expected = {json.dumps(ground.ask(sql=SQL))}
    start = threading.Barrier(32)

    def episode(_: int) -> list[str]:
        start.wait()
        return read_often(str(tmp_path))

    spawned = multiprocessing.get_context("spawn")
    with ThreadPoolExecutor(32) as threads, ProcessPoolExecutor(4, mp_context=spawned) as processes:
        there = [processes.submit(read_often, str(tmp_path)) for _ in range(4)]
        here = list(threads.map(episode, range(32)))
        found = [
            answer for answers in [*here, *(job.result() for job in there)] for answer in answers
        ]
    assert {json.dumps(json.loads(answer)) for answer in found} == expected
    assert len(found) == 36 * 20
    assert ground.is_unchanged()


def test_a_lock_that_another_holds_keeps_nobody_out(tmp_path: Path) -> None:
    """Whoever writes to the original, readers neither wait nor fail."""
    ground = Ground(tmp_path)
    other = sqlite3.connect(ground.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    assert ground.rows("SELECT count(*) FROM emp") == [[3]]
    assert ground.rows("SELECT count(*) FROM emp", writable=True) == [[3]]
    other.execute("ROLLBACK")
    other.close()

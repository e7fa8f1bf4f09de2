"""What search backends find, and what they cost: recall on questions, and time at a size."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from toolenvs.backends import Backend, make_over
from toolenvs.bench.interleave import Progress
from toolenvs.bench.setting import Setting, look_around
from toolenvs.bench.statistics import Interval, percentile
from toolenvs.corpora import load_corpus
from toolenvs.errors import RuntimeFailure, UsageError
from toolenvs.protocols import Corpus, TaskSource
from toolenvs.tasks import load_tasks, resources_of
from toolenvs.types import Task

DEPTHS = (2, 5, 10)
"""Hits that count, for each recall."""

BACKENDS = ("bm25", "dense", "hybrid")


class RecallRow(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename={f"recall_{depth}": f"recall@{depth}" for depth in DEPTHS},
):
    """One backend on all questions of a source.

    Attributes:
        way: the backend.
        payload: the questions' source.
        n: questions whose supporting passages are known.
        recall_2, recall_5, recall_10: share of a question's supporting passages among the first 2,
            5 and 10 hits, mean over questions; ``"recall@2"`` in JSON. Of questions with several
            hops one search by their text finds the first passages, not those that only the first
            ones name.
        p50_ms, p95_ms: milliseconds of one search of 10 hits.
    """

    way: str
    payload: str
    n: int
    recall_2: float
    recall_5: float
    recall_10: float
    p50_ms: float
    p95_ms: float


class RetrievalReport(msgspec.Struct, frozen=True, kw_only=True):
    """What ``bench_retrieval`` found.

    Attributes:
        rows: one for each backend that could be asked.
        ratios: none; every bench has the key.
        passages: size of the corpus.
        skipped: why other backends could not be asked, each reason once.
        setting: the machine.
    """

    rows: tuple[RecallRow, ...]
    ratios: dict[str, Interval]
    passages: int
    skipped: dict[str, str]
    setting: Setting


def bench_retrieval(
    tasks: str | TaskSource = "",
    *,
    backend: Sequence[str | Backend] = BACKENDS,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    progress: Progress | None = None,
) -> RetrievalReport:
    """Ask backends every question of a source and count the supporting passages among the hits.

    Args:
        tasks: a source of the family ``search`` whose tasks name their supporting passages; the
            family's own when empty.
        backend: backends or their names; those that cannot run here are skipped.
        options: keyword options by name.
        progress: called after each backend.

    Raises:
        UsageError: The source has no corpus, or no task with known support.
        UnknownNameError: A name is unknown.
    """
    setting = look_around("index")
    source = load_tasks(tasks, family="search")
    corpus = corpus_of(source)
    questions = [
        (question_of(task), support_of(task))
        for task in map(source.__getitem__, range(len(source)))
    ]
    questions = [(question, support) for question, support in questions if support]
    if not questions:
        raise UsageError(f"no task of {source.name!r} says which passages support its answer.")
    rows: list[RecallRow] = []
    skipped: dict[str, str] = {}
    for one in backend:
        name = one if isinstance(one, str) else one.name
        try:
            own = (options or {}).get(name, {})
            made = make_over(corpus, one, own) if isinstance(one, str) else one
            rows.append(_measure(made, source.name, questions))
        except RuntimeFailure as failure:
            why = str(failure)
            before = next((other for other, said in skipped.items() if said == why), "")
            skipped[name] = f"for the same reason as {before}" if before else why
        if progress is not None:
            progress()
    return RetrievalReport(
        rows=tuple(rows), ratios={}, passages=len(corpus), skipped=skipped, setting=setting
    )


def corpus_of(source: TaskSource) -> Corpus:
    """The corpus that a source's tasks are about.

    Raises:
        UsageError: It has none.
    """
    corpus = resources_of(source).get("index", {}).get("corpus")
    if not corpus:
        raise UsageError(
            f"the source {source.name!r} has no corpus to search: add ,corpus=FILE to it."
        )
    return load_corpus(corpus)


def question_of(task: Task) -> str:
    """What a task asks, without instructions where the source keeps them apart."""
    return str(task.data.get("question") or task.prompt)


def support_of(task: Task) -> frozenset[str]:
    """The ids of the passages that hold what a task's answer needs."""
    return frozenset(map(str, task.grading.get("supporting") or ()))


def _measure(
    backend: Backend, source_name: str, questions: Sequence[tuple[str, frozenset[str]]]
) -> RecallRow:
    prepare = getattr(backend, "prepare", None)
    if prepare is not None:
        prepare()
    backend.search(questions[0][0], max(DEPTHS))  # the first search loads what is loaded lazily
    seconds: list[float] = []
    found: list[list[str]] = []
    for question, _ in questions:
        began = time.perf_counter()
        hits = backend.search(question, max(DEPTHS))
        seconds.append(time.perf_counter() - began)
        found.append([hit.id for hit in hits])
    recalls = {
        f"recall_{depth}": sum(
            len(support & set(ids[:depth])) / len(support)
            for ids, (_, support) in zip(found, questions, strict=True)
        )
        / len(questions)
        for depth in DEPTHS
    }
    return RecallRow(
        way=backend.name,
        payload=source_name,
        n=len(questions),
        p50_ms=percentile(seconds, 50) * 1e3,
        p95_ms=percentile(seconds, 95) * 1e3,
        **recalls,
    )

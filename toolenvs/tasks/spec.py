"""What a user writes to name tasks: ``gsm8k:PATH``, sums of such specs, lists."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from toolenvs import sources
from toolenvs.errors import UsageError
from toolenvs.protocols import TaskSource
from toolenvs.tasks.collected import Mixture, TaskList
from toolenvs.types import Task

_PLUS = re.compile(r"\+(?=\d*[A-Za-z_][A-Za-z0-9_]*:)")
_WEIGHT = re.compile(r"\*(\d+\.?\d*|\.\d+)$")

TaskSpec = str | TaskSource | Sequence[Any]
"""What ``load_tasks`` reads."""


def load_tasks(spec: TaskSpec, *, family: str) -> TaskSource:
    """Load tasks.

    Args:
        spec: one of

            - ``"SOURCE:LOCATION"``: a source by name and its file, folder or options, such as
              ``"gsm8k:data/test.jsonl"`` or ``"generated:seed=0,n=100"``. Everything behind the
              first colon is the location, whatever characters it holds.
            - ``""`` or ``"builtin"``: the family's own small set.
            - ``"A:X+B:Y"``: both, every task drawn equally often. ``"A:X*0.7+B:Y*0.3"``: seven of
              ten draws come from A, three from B. A plus sign joins only where ``NAME:`` follows;
              a location in which that stands, or one that ends in ``*`` and a number, goes into a
              list.
            - a list of specs or sources, ``["A:X", "B:Y"]``, or of pairs with their weights,
              ``[("A:X", 0.7), ("B:Y", 0.3)]``: the same, with nothing to escape.
            - a list of ``Task``, or a source of your own.
        family: the family of the environment, passed on to the source.

    Raises:
        UnknownNameError: No source has that name; the message names the nearest.
        UsageError: The spec is none of these, or its tasks belong to another family.
        DataError: A file is missing or a row cannot be used; see the source.
    """
    source = _load(spec, family)
    for part in source.parts if isinstance(source, Mixture) else [source]:
        if not len(part):
            raise UsageError(f"source {part.name!r} has no tasks.")
        # A file's tasks are all of one family; tasks that a caller made may be of any.
        for row in range(len(part) if isinstance(part, TaskList) else 1):
            if (found := part[row].family) != family:
                raise UsageError(
                    f"source {part.name!r} has tasks of the family {found!r}; this environment is "
                    f"of the family {family!r}."
                )
    return source


def _load(spec: TaskSpec, family: str) -> TaskSource:
    if isinstance(spec, str):
        texts = _PLUS.split(spec)
        return _make(spec, family) if len(texts) == 1 else _mix_texts(texts, family)
    if isinstance(spec, TaskSource) and not isinstance(spec, list | tuple):
        return spec
    if isinstance(spec, list | tuple) and not spec:
        raise UsageError(f"tasks={spec!r} holds nothing: list at least one task, spec or source.")
    if not isinstance(spec, Sequence) or not spec:
        raise UsageError(
            f"tasks={spec!r} cannot be read: pass 'SOURCE:LOCATION', a source, or a list of tasks, "
            "of specs or of (spec, weight) pairs that is not empty."
        )
    items: list[Any] = list(spec)
    if all(isinstance(item, Task) for item in items):
        return TaskList(items)
    pairs = [item for item in items if isinstance(item, tuple) and len(item) == 2]
    if pairs and len(pairs) < len(items):
        raise UsageError(f"tasks={spec!r}: give every part a weight, or none.")
    parts = [_part(item[0] if pairs else item, family) for item in items]
    return Mixture(parts, [item[1] for item in items] if pairs else None)


def _part(item: Any, family: str) -> TaskSource:
    # A text in a list is one spec as it stands: nothing in it has to be escaped.
    return _make(item, family) if isinstance(item, str) else _load(item, family)


def _mix_texts(texts: Sequence[str], family: str) -> TaskSource:
    weights = [_WEIGHT.search(text) for text in texts]
    if not any(weights):
        return Mixture([_make(text, family) for text in texts])
    if not all(weights):
        raise UsageError(f"tasks={'+'.join(texts)!r}: give every part a weight, or none.")
    parts = [_make(_WEIGHT.sub("", text), family) for text in texts]
    return Mixture(parts, [float(found[1]) for found in weights if found])


def _make(spec: str, family: str) -> TaskSource:
    name, colon, location = spec.partition(":")
    name = name.strip() or ("" if colon else "builtin")
    if not colon and name not in sources.names() and re.search(r"[./\\]", name):
        raise UsageError(
            f"tasks={spec!r} names no source: write SOURCE:PATH, such as jsonl:{spec}. "
            f"Sources: {', '.join(sources.names())}."
        )
    return sources.make(name, location=location, family=family)

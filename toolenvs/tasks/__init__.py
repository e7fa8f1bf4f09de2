"""Which task comes next: loading tasks by a spec, and dealing them out.

``load_tasks`` turns what a user writes into a ``TaskSource``; ``TaskSampler`` deals its tasks in
shuffled epochs, by splits, shards, groups and weights, from a state that can be saved.
"""

from __future__ import annotations

from toolenvs.tasks.collected import Mixture, TaskList, resources_of, task_ids
from toolenvs.tasks.sampler import Draw, TaskSampler
from toolenvs.tasks.spec import TaskSpec, load_tasks

__all__ = [
    "Draw",
    "Mixture",
    "TaskList",
    "TaskSampler",
    "TaskSpec",
    "load_tasks",
    "resources_of",
    "task_ids",
]

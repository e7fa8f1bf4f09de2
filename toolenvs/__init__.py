"""Gymnasium environments for training tool-using language models.

    import gymnasium as gym
    import toolenvs

    env = gym.make("toolenvs/MathTIR-v0")
    obs, info = env.reset(seed=7)

Everything named here loads on first use, so that the import itself stays cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import gymnasium as gym

if TYPE_CHECKING:
    from toolenvs.env import ToolEnv
    from toolenvs.episode import Budgets, Episode
    from toolenvs.errors import (
        DataError,
        EpisodeOverError,
        RuntimeFailure,
        ToolenvsError,
        UnknownNameError,
        UsageError,
    )
    from toolenvs.pool import SandboxPool
    from toolenvs.rubric import Rubric, rescore
    from toolenvs.spaces import Unicode
    from toolenvs.tasks import TaskSampler, load_tasks
    from toolenvs.types import Limits, Step, Task, ToolCall, ToolResult, Trajectory, Turn
    from toolenvs.vector import ToolVectorEnv

_HOMES = {
    "Budgets": "episode",
    "DataError": "errors",
    "Episode": "episode",
    "EpisodeOverError": "errors",
    "Limits": "types",
    "Rubric": "rubric",
    "RuntimeFailure": "errors",
    "SandboxPool": "pool",
    "Step": "types",
    "Task": "types",
    "TaskSampler": "tasks",
    "ToolCall": "types",
    "ToolEnv": "env",
    "ToolResult": "types",
    "ToolVectorEnv": "vector",
    "ToolenvsError": "errors",
    "Trajectory": "types",
    "Turn": "types",
    "Unicode": "spaces",
    "UnknownNameError": "errors",
    "UsageError": "errors",
    "load_tasks": "tasks",
    "rescore": "rubric",
}

__all__ = [
    "Budgets",
    "DataError",
    "Episode",
    "EpisodeOverError",
    "Limits",
    "Rubric",
    "RuntimeFailure",
    "SandboxPool",
    "Step",
    "Task",
    "TaskSampler",
    "ToolCall",
    "ToolEnv",
    "ToolResult",
    "ToolVectorEnv",
    "ToolenvsError",
    "Trajectory",
    "Turn",
    "Unicode",
    "UnknownNameError",
    "UsageError",
    "load_tasks",
    "rescore",
]

ENV_IDS = {
    "toolenvs/MathTIR-v0": "math_tir",
    "toolenvs/SQL-v0": "sql",
    "toolenvs/Search-v0": "search",
}


def register_envs() -> None:
    """Tell Gymnasium the environment ids, once; ``import toolenvs`` does it."""
    for env_id, family in ENV_IDS.items():
        if env_id not in gym.registry:
            gym.register(
                id=env_id,
                entry_point="toolenvs.env:ToolEnv",
                vector_entry_point="toolenvs.vector:ToolVectorEnv",
                kwargs={"family": family},
            )


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'toolenvs' has no attribute {name!r}")
    return getattr(importlib.import_module(f"toolenvs.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])


register_envs()

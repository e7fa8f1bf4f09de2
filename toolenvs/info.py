"""What ``reset`` and ``step`` tell beside the observation: the same keys every time.

Plain values only, no None where the environment fills it, no clock: vector environments batch them
and Gymnasium's checker compares them in equal runs. ``docs/environment.md`` lists the keys.
"""

from __future__ import annotations

from typing import Any

import msgspec

from toolenvs.episode import Episode
from toolenvs.rubric import Rubric
from toolenvs.types import Step, ToolResult


def step_info(
    episode: Episode | None, step: Step | None, *, rubric: Rubric, replay: str, reveal_gold: bool
) -> dict[str, Any]:
    """Build an info.

    Args:
        episode: the episode at hand, None where none could begin.
        step: its last step, None after a reset.
        rubric: names the reward terms.
        replay: the replay mode.
        reveal_gold: whether the gold answer is told once the episode has ended.
    """
    scores = step.scores if step else {}
    results = step.results if step else ()
    parsed = step.parsed if step else None
    names = rubric.names
    revealed = reveal_gold and episode is not None and episode.trajectory.ended
    return {
        "task_id": episode.trajectory.task.id if episode else "",
        "turns": len(episode.trajectory.steps) if episode else 0,
        "left": episode.left() if episode else {"turns": 0, "tokens": 0},
        "reward_terms": {n: float(step.terms[n]) if step else 0.0 for n in names},
        "reward_masked": rubric.masked(scores, failure=step.failure if step else ""),
        "reward_reasons": {n: scores[n].reason if n in scores else "" for n in names},
        "calls": [msgspec.to_builtins(call) for call in step.calls] if step else [],
        "results": [_plain(result) for result in results],
        "messages": [dict(message) for message in episode.messages] if episode else [],
        "format_problems": list(parsed.problems) if parsed else [],
        "format_error": parsed.error.message if parsed and parsed.error else "",
        "truncated_output": any(result.truncated for result in results),
        "note": " ".join(result.note for result in results if result.note),
        "replay": replay,
        "failure": step.failure if step else "",
        "end_reason": step.end_reason if step else "",
        "gold": episode.trajectory.task.answer if episode and revealed else "",
    }


def _plain(result: ToolResult) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(result)
    plain["error"] = plain["error"] or {"kind": "", "message": ""}
    return plain

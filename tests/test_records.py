"""Records come back as they were, whatever they hold and wherever a crash cuts them."""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trajectories import TASK, episode, json_values, python, recorded, submit
from toolenvs import exactjson
from toolenvs.errors import DataError, UsageError
from toolenvs.records import (
    Damage,
    NewerVersionError,
    RunWriter,
    decode_trajectory,
    encode_trajectory,
    read_run,
    read_trajectories,
    trajectory_hash,
)
from toolenvs.types import Step, ToolCall, Trajectory, Turn

SETTINGS = {"env": "math_tir", "seed": 7}


def numbered(number: int) -> Trajectory:
    """A small episode that can be told from others."""
    return msgspec.structs.replace(episode(python(), submit()), seed=number)


@settings(deadline=None)
@given(recorded())
def test_a_trajectory_comes_back_equal_from_one_ascii_line(trajectory: Trajectory) -> None:
    """decode(encode(t)) == t for anything in every field, and the line holds no line break."""
    line = encode_trajectory(trajectory)
    assert decode_trajectory(line) == trajectory
    assert line.isascii()
    assert len(line.splitlines()) == 1
    assert encode_trajectory(decode_trajectory(line)) == line


@settings(deadline=None)
@given(json_values())
def test_exact_json_gives_back_what_it_was_given(value: object) -> None:
    """No value is changed by a round trip, nor taken for the escape of another."""
    back = exactjson.decode(exactjson.encode(value))
    assert back == value
    assert repr(back) == repr(value) or isinstance(value, dict | list)  # 1 is not 1.0, nor 0.0 -0.0


def test_not_a_number_comes_back() -> None:
    """A NaN that a sampler or a tool gave is kept as one."""
    assert math.isnan(exactjson.decode(exactjson.encode([math.nan]))[0])


def test_a_surrogate_pair_comes_back_as_its_character_and_stays() -> None:
    """Two halves side by side become the character they denote; then nothing changes any more."""
    line = exactjson.encode("\ud83d" + "\ude00")
    assert exactjson.decode(line) == "\U0001f600"
    assert exactjson.encode(exactjson.decode(line)) == line


def test_keys_are_sorted_and_a_turn_is_a_text() -> None:
    """Equal trajectories are equal bytes, in whatever order their mappings were filled."""
    one = Step(action=Turn("x", "stop"), calls=(ToolCall("f", {"a": 1, "b": 2}),))
    two = Step(action="x", calls=(ToolCall("f", {"b": 2, "a": 1}),))
    assert trajectory_hash(episode(one)) == trajectory_hash(episode(two))


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": b"raw"}, "arguments.a is of type bytes"),
        ({"a": [1, {2}]}, "arguments.a[1] is of type set"),
        ({"a": {1: 2}}, "arguments.a has the key 1"),
        ({"a": 10**4300}, "arguments.a is an integer"),
        ({"a": object()}, "arguments.a is of type object"),
    ],
)
def test_what_json_would_change_is_refused_with_its_place(
    value: dict[str, object], place: str
) -> None:
    """Nothing is silently turned into something else, as bytes into base64."""
    step = Step(action="", calls=(ToolCall("f", value),))
    with pytest.raises(UsageError) as caught:
        encode_trajectory(episode(step))
    assert f"trajectory.steps[0].calls[0].{place}" in str(caught.value)


def test_too_deep_a_nesting_is_a_usage_error() -> None:
    """A value nested beyond Python's reach is refused, not a RecursionError."""
    value: list[object] = []
    for _ in range(5000):
        value = [value]
    with pytest.raises(UsageError, match="nested too deeply"):
        exactjson.encode(value)


@pytest.mark.parametrize(
    "line", [b"", b"{}", b"[1]", b"\0\0\0\0", b"{", b"\xff", b'{"version":"x"}', b'{"version":1}']
)
def test_what_is_no_trajectory_is_a_data_error(line: bytes) -> None:
    """No broken line gives anything but a DataError."""
    with pytest.raises(DataError):
        decode_trajectory(line)


def test_records_of_before_a_field_was_added_are_read() -> None:
    """What an older toolenvs did not write has its default; the rest is as it was."""
    whole = numbered(0)
    data = json.loads(encode_trajectory(whole))
    del data["branch"]
    for step in data["steps"]:
        del step["policy_version"]
    read = decode_trajectory(json.dumps(data))
    assert read == whole
    assert read.branch == ()
    assert [step.policy_version for step in read.steps] == [""] * len(read.steps)


def test_a_newer_version_is_named(tmp_path: Path) -> None:
    """A record of a newer version is refused with its place, never half read or skipped."""
    newer = encode_trajectory(msgspec.structs.replace(numbered(0), version=2))
    with pytest.raises(NewerVersionError, match="version 2"):
        decode_trajectory(newer)
    file = tmp_path / "t.jsonl"
    file.write_bytes(encode_trajectory(numbered(0)) + b"\n" + newer + b"\n")
    with pytest.raises(NewerVersionError, match=r"t\.jsonl:2: .*upgrade"):
        list(read_trajectories(file))


def test_a_run_is_a_folder_of_three_files(tmp_path: Path) -> None:
    """Settings, episodes and clocks are apart, and each clock names its episode."""
    with RunWriter(tmp_path / "run", SETTINGS) as run:
        assert run.write(numbered(0)) == 0
        assert run.write(numbered(1), {"wall_s": 0.5}) == 1
    folder = tmp_path / "run"
    assert sorted(path.name for path in folder.iterdir()) == [
        "run.json",
        "timings.jsonl",
        "trajectories.jsonl",
    ]
    assert list(read_trajectories(folder)) == [numbered(0), numbered(1)]
    assert (folder / "timings.jsonl").read_text() == '{"episode":1,"wall_s":0.5}\n'
    assert read_run(folder).settings == SETTINGS
    assert len(read_run(folder).toolenvs) == 1


def test_equal_runs_are_equal_bytes(tmp_path: Path) -> None:
    """Only ``timings.jsonl`` may differ between two runs that went alike."""
    for name, wall_s in (("a", 1.0), ("b", 2.0)):
        with RunWriter(tmp_path / name, SETTINGS) as run:
            run.write(numbered(0), {"wall_s": wall_s})
    for file in ("run.json", "trajectories.jsonl"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_cut_at_any_byte_loses_at_most_the_last_line(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A crash at any byte leaves all whole lines readable; going on sets the torn one aside, and
    ends one that lacks its end alone.
    """
    folder = tmp_path_factory.mktemp("run")
    with RunWriter(folder, SETTINGS) as run:
        for number in range(3):
            run.write(numbered(number))
    file = folder / "trajectories.jsonl"
    whole = file.read_bytes()
    size = data.draw(st.integers(0, len(whole)))
    os.truncate(file, size)
    kept = whole[:size].count(b"\n")
    tail = size - (whole[:size].rfind(b"\n") + 1)
    if whole[size : size + 1] == b"\n":  # nothing but the line's end is lost: it is whole
        kept, tail = kept + bool(tail), 0

    found: list[Damage] = []
    assert list(read_trajectories(folder, damaged=found.append)) == [
        numbered(number) for number in range(kept)
    ]
    assert [(damage.offset, damage.length) for damage in found] == [(size - tail, tail)][
        : bool(tail)
    ]

    with RunWriter(folder, SETTINGS) as run:
        assert run.write(numbered(9)) == kept
        assert len(run.torn) == bool(tail)
    assert list(read_trajectories(folder))[kept:] == [numbered(9)]
    if tail:
        assert (folder / "trajectories.jsonl.torn-1").read_bytes() == whole[size - tail : size]


def test_a_damaged_line_in_the_middle_is_named_and_the_rest_is_found(tmp_path: Path) -> None:
    """Neighbours of a bad line are not lost, and its place is told."""
    good = encode_trajectory(numbered(1)) + b"\n"
    file = tmp_path / "t.jsonl"
    file.write_bytes(good + b"\0" * 10 + b"\n" + good)
    found: list[Damage] = []
    assert list(read_trajectories(file, damaged=found.append)) == [numbered(1), numbered(1)]
    assert [(damage.offset, damage.length) for damage in found] == [(len(good), 11)]
    assert list(read_trajectories(file)) == [numbered(1), numbered(1)]


def test_a_second_torn_tail_gets_a_name_of_its_own(tmp_path: Path) -> None:
    """What was set aside once is never overwritten."""
    for half in (b"{half", b"{other"):
        RunWriter(tmp_path, SETTINGS).close()
        with (tmp_path / "trajectories.jsonl").open("ab") as file:
            file.write(half)
    RunWriter(tmp_path, SETTINGS).close()
    assert (tmp_path / "trajectories.jsonl.torn-1").read_bytes() == b"{half"
    assert (tmp_path / "trajectories.jsonl.torn-2").read_bytes() == b"{other"


def test_threads_share_a_writer(tmp_path: Path) -> None:
    """Lines of many threads are whole, all there, and numbered as they stand."""
    numbers: dict[int, int] = {}

    def write(start: int) -> None:
        for number in range(start, start + 20):
            numbers[run.write(numbered(number), {"n": number})] = number

    with RunWriter(tmp_path, SETTINGS) as run:
        threads = [threading.Thread(target=write, args=(100 * k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    seeds = [trajectory.seed for trajectory in read_trajectories(tmp_path)]
    assert seeds == [numbers[line] for line in range(80)]


def test_one_writer_at_a_time_and_only_for_the_same_run(tmp_path: Path) -> None:
    """Neither two writers nor two runs mix in one folder."""
    with RunWriter(tmp_path, SETTINGS), pytest.raises(UsageError, match="another writer"):
        RunWriter(tmp_path, SETTINGS)
    with pytest.raises(UsageError, match="other settings"):
        RunWriter(tmp_path, {**SETTINGS, "seed": 8})
    RunWriter(tmp_path, SETTINGS).close()


def test_nothing_is_written_of_what_cannot_be(tmp_path: Path) -> None:
    """A trajectory or clock that is no JSON leaves no line, and a closed writer says so."""
    bad = episode(Step(action="", calls=(ToolCall("f", {"a": b""}),)), task=TASK)
    run = RunWriter(tmp_path, SETTINGS)
    with pytest.raises(UsageError):
        run.write(bad)
    with pytest.raises(UsageError):
        run.write(numbered(0), {"wall_s": b""})
    run.close()
    run.close()
    with pytest.raises(UsageError, match="closed"):
        run.write(numbered(0))
    assert list(read_trajectories(tmp_path)) == []


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that the disk takes only in part is undone, and the next one stands alone."""
    real = os.write
    with RunWriter(tmp_path, SETTINGS) as run:
        run.write(numbered(0))
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", lambda fd, data: real(fd, data[:10]))
            with pytest.raises(OSError, match="10 of"):
                run.write(numbered(1))
        run.write(numbered(2))
    assert list(read_trajectories(tmp_path)) == [numbered(0), numbered(2)]


@pytest.mark.parametrize("text", ["", "{}", '{"settings":{},"version":2}'])
def test_a_run_file_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    """A broken or newer ``run.json`` is an error with its place, and is not overwritten."""
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(DataError, match=r"run\.json:1: "):
        RunWriter(tmp_path, SETTINGS)
    assert (tmp_path / "run.json").read_text() == text


def test_a_missing_run_is_a_usage_error(tmp_path: Path) -> None:
    """Reading what is not there says what to give."""
    with pytest.raises(UsageError, match=r"\.jsonl"):
        list(read_trajectories(tmp_path))
    with pytest.raises(UsageError, match="not the folder of a run"):
        read_run(tmp_path)


@pytest.mark.parametrize("field", ["task", "seed", "sample", "branch", "steps", "settings"])
@pytest.mark.parametrize("value", ['"\\ud800"', "1e400", "-7" * 30, "[" * 300 + "]" * 300, "null"])
def test_a_value_of_the_wrong_kind_is_damage_and_the_rest_is_found(
    field: str, value: str, tmp_path: Path
) -> None:
    """Whatever stands in a line, it is named with its place and the others are read."""
    good = encode_trajectory(numbered(1))
    data = {**msgspec.json.decode(good), field: msgspec.Raw(value.encode())}
    file = tmp_path / "t.jsonl"
    bad = msgspec.json.encode(data)
    file.write_bytes(good + b"\n" + bad + b"\n" + good + b"\n")
    found: list[Damage] = []
    assert list(read_trajectories(file, damaged=found.append)) == [numbered(1), numbered(1)]
    assert [(damage.offset, damage.length) for damage in found] == [(len(good) + 1, len(bad) + 1)]


@pytest.mark.parametrize("version", [0, -7])
def test_a_version_that_never_was_is_damage(version: int) -> None:
    """Only what some version of toolenvs wrote is read."""
    line = msgspec.json.encode(
        {**msgspec.json.decode(encode_trajectory(numbered(1))), "version": version}
    )
    with pytest.raises(DataError, match=f"version {version}"):
        decode_trajectory(line)


def test_an_episode_is_written_with_its_clocks_or_not_at_all(tmp_path: Path) -> None:
    """When the disk takes the one and not the other, nothing stays, and a retry doubles nothing."""
    with RunWriter(tmp_path, SETTINGS) as run:
        run.write(numbered(0), {"wall_s": 1.0})
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        (tmp_path / "timings.jsonl").write_bytes(b" " * (1 << 20) + b"\n")
        ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
        try:
            with pytest.raises(OSError, match="File too large"):
                run.write(numbered(1), {"wall_s": 1.0})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, ignored)
        assert list(read_trajectories(tmp_path)) == [numbered(0)]
        assert run.write(numbered(1), {"wall_s": 1.0}) == 1
    assert list(read_trajectories(tmp_path)) == [numbered(0), numbered(1)]

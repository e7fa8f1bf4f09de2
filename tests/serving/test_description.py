"""What the server says of itself in OpenAPI is what it does."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serving.running import running
from toolenvs.serving.limits import SearchLimits
from toolenvs.serving.reading import RefusedError, RequestReader

_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def faults(value: Any, schema: Mapping[str, Any], whole: Mapping[str, Any], at: str) -> list[str]:
    """Where a value is not as its schema says; the keywords that the description uses are known."""
    if "$ref" in schema:
        schema = whole["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        each = [faults(value, choice, whole, at) for choice in schema["anyOf"]]
        return [] if not all(each) else [f"{at}: none of {len(each)}"]
    found = [f"{at}: no {schema['const']!r}"] if schema.get("const", value) != value else []
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    right = [isinstance(value, _KINDS[kind]) for kind in kinds]
    if kinds and (not any(right) or (isinstance(value, bool) and "boolean" not in kinds)):
        return [*found, f"{at}: {value!r} is no {kinds}"]
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        found += [f"{at}: no {name!r}" for name in schema.get("required", ()) if name not in value]
        if schema.get("additionalProperties") is False:
            found += [f"{at}: also {name!r}" for name in set(value) - set(properties)]
        for name in set(value) & set(properties):
            found += faults(value[name], properties[name], whole, f"{at}.{name}")
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            found.append(f"{at}: too few")
        for index, item in enumerate(value):
            found += faults(item, schema.get("items", {}), whole, f"{at}[{index}]")
    return found


REQUESTS: list[tuple[str, str, Any]] = [
    ("POST", "/retrieve", {"queries": ["lyon", "", "none of it"], "return_scores": True}),
    ("POST", "/retrieve", {"queries": ["lyon oslo"], "topk": 2}),
    ("POST", "/retrieve", {"queries": ["lyon"], "topk": 3.0, "more": 1}),
    ("POST", "/retrieve", {"queries": [], "topk": None}),
    ("POST", "/retrieve", {"query": "lyon", "topk": 1, "return_scores": True}),
    ("POST", "/retrieve", {"query": "lyon"}),
    ("POST", "/retrieve", {"queries": [1]}),
    ("POST", "/retrieve", {"queries": ["a"], "topk": 10**30}),
    ("POST", "/retrieve", {"queries": ["x" * 9000]}),
    ("GET", "/document?id=7", None),
    ("GET", "/document?id=a%2Fb%20c", None),
    ("GET", "/document?id=nope", None),
    ("GET", "/document?id=", None),
    ("GET", f"/document?id={'x' * 3000}", None),
    ("GET", "/health", None),
    ("GET", "/openapi.json", None),
]


def test_answers_are_as_described() -> None:
    """Status, content type and body of each kind of answer are in the description."""
    with running() as url:
        whole = httpx.get(f"{url}/openapi.json").json()
        for method, path, body in REQUESTS:
            answer = httpx.request(method, url + path, json=body, timeout=30)
            told = whole["paths"][path.partition("?")[0]][method.lower()]["responses"]
            content = told[str(answer.status_code)]["content"]
            schema = content[answer.headers["Content-Type"]]["schema"]
            assert faults(answer.json(), schema, whole, path) == []


@pytest.mark.parametrize(
    ("topk", "taken"),
    [
        *((text, True) for text in ("3", "3.0", "null", "100")),
        *((text, False) for text in ("0", "101", "1.5", '"3"', "true", "1e400", "[]")),
    ],
)
def test_a_whole_number_is_one_however_it_is_written(topk: str, taken: bool) -> None:
    """As in JSON Schema; every refusal says what is allowed."""
    reader = RequestReader(SearchLimits())
    for asked in ('"queries": ["a"]', '"query": "a", "return_scores": false'):
        body = f'{{{asked}, "topk": {topk}}}'.encode()
        if taken:
            assert reader.read(body, "json").topk == json.loads(topk)
            continue
        with pytest.raises(RefusedError, match="whole number from 1 to 100") as raised:
            reader.read(body, "json")
        assert (raised.value.status, raised.value.problem.loc) == (422, ("body", "topk"))


@pytest.mark.slow
def test_it_survives_schemathesis(tmp_path: Path) -> None:
    """No check of schemathesis finds a fault; skipped where its command is not installed."""
    command = shutil.which("schemathesis")
    if command is None:
        pytest.skip("the command schemathesis is not installed: pip install schemathesis")
    with running() as url:
        done = subprocess.run(
            [
                *(command, "run", "--checks", "all", "--max-examples", "50", "--seed", "1"),
                *("--max-failures", "5", f"{url}/openapi.json"),
            ],
            cwd=tmp_path,  # it keeps what it found
            capture_output=True,
            text=True,
            timeout=170,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-3000:]

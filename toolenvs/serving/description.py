"""The description of the search server's interface, OpenAPI 3.1."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import msgspec

from toolenvs.serving.limits import SearchLimits

MAX_ID_CHARS = 2000
_ABOUT = """\
Search a corpus as Search-R1's retrieval server does. A request of `/retrieve` in MessagePack
(`application/msgpack`, or no content type at all) is answered in MessagePack; one with a single
`query` gets one list of items there, as GEM reads it."""
_DOCUMENT = {
    "type": "object",
    "required": ["id", "contents"],
    "properties": {
        "id": {"type": "string"},
        "contents": {"type": "string", "description": 'the title in quotes, "\\n", the text'},
        "url": {"type": "string"},
    },
    "additionalProperties": False,
}
_SCORED = {
    "type": "object",
    "required": ["document", "score"],
    "properties": {
        "document": {"$ref": "#/components/schemas/Document"},
        "score": {"type": "number", "description": "the larger the better"},
    },
    "additionalProperties": False,
}
_LISTS = [
    {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}}
    for name in ("Scored", "Document")
]
_RESULT = {
    "type": "object",
    "required": ["result"],
    "properties": {
        "result": {
            "type": "array",
            "items": {"anyOf": _LISTS},
            "description": "a list for each query, in order; scored items if scores were asked for",
        }
    },
    "additionalProperties": False,
}
_PASSAGE = {
    "type": "object",
    "required": ["id", "title", "text", "url"],
    "properties": {name: {"type": "string"} for name in ("id", "title", "text", "url")},
    "additionalProperties": False,
}
_HEALTH = {
    "type": "object",
    "required": ["status", "backend", "fingerprint", "passages"],
    "properties": {
        "status": {"const": "ok"},
        "backend": {"type": "string"},
        "fingerprint": {"type": "string", "description": "all that a result depends on"},
        "passages": {"type": ["integer", "null"], "minimum": 0},
    },
    "additionalProperties": False,
}
_PROBLEM = {
    "type": "object",
    "required": ["type", "loc", "msg"],
    "properties": {
        "type": {"type": "string"},
        "loc": {"type": "array", "items": {"type": ["string", "integer"]}},
        "msg": {"type": "string"},
    },
    "additionalProperties": False,
}
_PROBLEMS = {
    "type": "object",
    "required": ["detail"],
    "properties": {
        "detail": {
            "type": "array",
            "items": {"$ref": "#/components/schemas/Problem"},
            "minItems": 1,
        }
    },
    "additionalProperties": False,
}


def describe(limits: SearchLimits, requests: Sequence[Any]) -> dict[str, Any]:
    """The whole description.

    Args:
        limits: the bounds.
        requests: the types that requests of ``/retrieve`` are checked by.
    """
    _, asked = msgspec.json.schema_components(requests, ref_template="#/components/schemas/{name}")
    for schema in asked.values():
        topk = schema["properties"]["topk"]
        topk["anyOf"] = [
            {"type": "integer", "minimum": 1, "maximum": limits.max_top_k},
            {"type": "null"},
        ]
        topk["description"] = f"passages for a query; null: {limits.top_k}"
    return {
        "openapi": "3.1.0",
        "info": {"title": "toolenvs search", "version": version("toolenvs"), "description": _ABOUT},
        "paths": {
            "/retrieve": {"post": _retrieve(list(asked))},
            "/document": {"get": _document()},
            "/health": {
                "get": _get("health", "Whether it answers, and what it searches.", "Health")
            },
            "/metrics": {"get": _metrics()},
            "/openapi.json": {"get": _get("openapi", "This description.", "")},
        },
        "components": {
            "schemas": {
                **asked,
                "Document": _DOCUMENT,
                "Scored": _SCORED,
                "Result": _RESULT,
                "Passage": _PASSAGE,
                "Health": _HEALTH,
                "Problem": _PROBLEM,
                "Problems": _PROBLEMS,
            }
        },
    }


def _retrieve(asked: Sequence[str]) -> dict[str, Any]:
    either = {"anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in asked]}
    return {
        "operationId": "retrieve",
        "summary": "Find passages for each of some queries; a blank query finds none.",
        "requestBody": {"required": True, "content": {"application/json": {"schema": either}}},
        "responses": {
            "200": {"description": "the passages", "content": _json("Result")},
            "408": _fault("the body did not come in time"),
            "413": _fault("the body is too large"),
            "415": _fault("the content type is not read"),
            "422": _fault("the body cannot be read, misses a field or passes a bound"),
            "503": {
                **_fault("too many requests at once, or the search failed: ask again"),
                "headers": {"Retry-After": {"schema": {"type": "integer", "minimum": 1}}},
            },
        },
    }


def _document() -> dict[str, Any]:
    name = {
        "name": "id",
        "in": "query",
        "required": True,
        "description": "the id of a passage, or its URL",
        "schema": {"type": "string", "minLength": 1, "maxLength": MAX_ID_CHARS},
    }
    return {
        "operationId": "document",
        "summary": "One passage, whole.",
        "parameters": [name],
        "responses": {
            "200": {"description": "the passage", "content": _json("Passage")},
            "404": _fault("there is no such passage"),
            "422": _fault("there is no id, or it is too long"),
            "503": {
                **_fault("too many requests at once, or it could not be looked up: ask again"),
                "headers": {"Retry-After": {"schema": {"type": "integer", "minimum": 1}}},
            },
        },
    }


def _metrics() -> dict[str, Any]:
    text = {"text/plain": {"schema": {"type": "string"}}}
    return {
        "operationId": "metrics",
        "summary": "Counts and times, for Prometheus.",
        "responses": {"200": {"description": "the text format 0.0.4", "content": text}},
    }


def _get(operation: str, summary: str, schema: str) -> dict[str, Any]:
    content = _json(schema) if schema else {"application/json": {"schema": {"type": "object"}}}
    return {
        "operationId": operation,
        "summary": summary,
        "responses": {"200": {"description": summary, "content": content}},
    }


def _json(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}


def _fault(description: str) -> dict[str, Any]:
    return {"description": description, "content": _json("Problems")}

"""The published schemas are valid, fresh, and take the contract's own example."""

from __future__ import annotations

import json

import jsonschema
import pytest

import resources
from engine.contract.answer import error_answer
from engine.contract.schema import schemas
from engine.errors import UsageError


def published(name: str) -> dict[str, object]:
    return json.loads(resources.path("schema", f"{name}.schema.json").read_text("utf-8"))


@pytest.mark.parametrize("name", sorted(schemas()))
def test_that_the_published_schema_is_what_the_code_answers_by(name):
    # Refresh with: python packaging/schemas.py
    assert published(name) == json.loads(json.dumps(schemas()[name]))


@pytest.mark.parametrize("name", sorted(schemas()))
def test_that_the_schema_itself_is_valid(name):
    jsonschema.Draft202012Validator.check_schema(schemas()[name])


def test_that_an_error_carries_code_sentence_and_field_and_hides_nothing_in_them():
    answer = error_answer("a", UsageError("No \x1b[31m\u202eevil here.", field="model\x00"))
    assert answer == {
        "schema": "plimsoll.budget/1",
        "id": "a",
        "error": {
            "code": "bad_request",
            "message": "No \\x1b[31m\\u202eevil here.",
            "field": "model\\x00",
        },
    }
    jsonschema.validate(answer, published("budget"))


def test_that_the_published_schemas_refuse_what_the_contract_does_not_know():
    answer = error_answer(1, UsageError("x")) | {"extra": 1}
    assert not jsonschema.Draft202012Validator(published("budget")).is_valid(answer)

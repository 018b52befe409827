from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from sample_bundles import write_small

from structdump.bundle import codec, schema
from structdump.bundle.limits import DEFAULT, Meter
from structdump.bundle.model import VERSION, Bundle
from structdump.config import DumpConfig

SCHEMAS = Path(__file__).parent.parent / "schemas"


def document(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    text = b"".join(codec.inflate(data, f, Meter(DEFAULT, len(data))) for f in codec.frames(data))
    return json.loads(text)  # type: ignore[no-any-return]  # a bundle is an object


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(schema.bundle_schema())
    return jsonschema.Draft202012Validator(schema.bundle_schema())


@pytest.mark.parametrize("end", [True, False])
def test_a_written_bundle_follows_the_schema(
    tmp_path: Path, validator: jsonschema.Draft202012Validator, end: bool
) -> None:
    bundle = document(write_small(tmp_path, end=end))
    validator.validate(bundle)
    assert bundle["$schema"] == schema.bundle_schema()["$id"]


def test_an_empty_bundle_follows_the_schema(validator: jsonschema.Draft202012Validator) -> None:
    validator.validate(Bundle().model_dump(by_alias=True, mode="json"))


@pytest.mark.parametrize(
    "change",
    [
        {"version": "2.0"},
        {"format": "other"},
        {"artifacts": [{"seq": 0, "name": "no kind"}]},
        {"artifacts": [{"seq": 0, "kind": "graph", "name": "n", "digest": "short"}]},
        {"texts": {"short": "text"}},
        {"texts": {"0" * 32: 1}},
        {"compiles": [{"status": "ok"}]},
        {"completeness": {"verdict": "great"}},
        {"complete": "yes"},
        {"level": "extreme"},
    ],
)
def test_the_schema_refuses(
    tmp_path: Path, validator: jsonschema.Draft202012Validator, change: dict[str, Any]
) -> None:
    bundle = document(write_small(tmp_path))
    assert not validator.is_valid(bundle | change)
    del bundle["complete"]
    assert not validator.is_valid(bundle)


def test_the_schema_allows_unknown_keys(tmp_path: Path, validator: jsonschema.Draft202012Validator) -> None:
    bundle = document(write_small(tmp_path))
    bundle["novelty"] = 1
    bundle["artifacts"][0]["novelty"] = 1
    validator.validate(bundle)


def test_the_settings_follow_their_schema() -> None:
    check = jsonschema.Draft202012Validator(schema.config_schema())
    check.validate({})
    check.validate(DumpConfig().model_dump(mode="json"))
    check.validate({"level": "medium", "passes": ["*fusion*", "!x"], "ranks": [0]})
    assert not check.is_valid({"level": "extreme"})
    assert not check.is_valid({"unknown": 1})


def test_the_files_that_are_checked_in_are_current() -> None:
    assert schema.main(["--check", str(SCHEMAS)]) == 0


def test_a_stale_file_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert schema.main(["--check", str(tmp_path)]) == 1
    assert "--write" in capsys.readouterr().err
    assert schema.main(["--write", str(tmp_path)]) == 0
    assert schema.main(["--check", str(tmp_path)]) == 0
    (tmp_path / "bundle-v1.schema.json").write_text("{}")
    assert schema.main(["--check", str(tmp_path)]) == 1


def test_the_page_on_the_format_names_every_key_of_the_document() -> None:
    page = (SCHEMAS / "README.md").read_text(encoding="utf-8")
    fields = [f.alias or name for name, f in Bundle.model_fields.items()]
    missing = [key for key in fields if f"`{key}`" not in page]
    kinds = schema.bundle_schema()["$defs"]["Artifact"]["properties"]["kind"]["enum"]
    missing += [kind for kind in kinds if f"`{kind}`" not in page]
    assert not missing
    assert VERSION in page


def test_the_functions_return_fresh_objects() -> None:
    first = schema.bundle_schema()
    kept = copy.deepcopy(first)
    first["properties"].clear()
    assert schema.bundle_schema() == kept

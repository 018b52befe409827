"""Settings: where they may come from, what they may be, and what is said about bad ones."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structdump import DumpConfig
from structdump.errors import ConfigError, UsageError


def test_keywords_count_more_than_environment_than_file_than_defaults(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text('level = "full"\nkernels = ["a"]\nmax_bytes = "1 MiB"\n')
    environ = {"STRUCTDUMP_CONFIG": str(path), "STRUCTDUMP_LEVEL": "medium", "STRUCTDUMP_KERNELS": "b,!c"}
    config = DumpConfig.resolve({"level": "low", "output": None}, environ)
    assert (config.level, config.kernels, config.max_bytes) == ("low", ("b", "!c"), 2**20)
    assert config.passes == ()
    assert DumpConfig.resolve({}, {"STRUCTDUMP_CONFIG": str(path)}).kernels == ("a",)
    assert DumpConfig.resolve(environ={}) == DumpConfig()


@pytest.mark.parametrize("form", ["{}", '{{"structdump": {}}}'])
def test_json_files(tmp_path, form):
    path = tmp_path / "settings.json"
    path.write_text(form.format(json.dumps({"level": "full", "ranks": [0, 2], "redact": False})))
    config = DumpConfig.resolve({}, {"STRUCTDUMP_CONFIG": str(path)})
    assert (config.level, config.ranks, config.redact) == ("full", (0, 2), False)


@pytest.mark.parametrize(
    ("text", "size"),
    [("24MB", 24_000_000), ("1.5 KiB", 1536), ("7", 7), ("0", None), ("none", None), ("2gib", 2**31)],
)
def test_sizes(text, size):
    assert DumpConfig.resolve(environ={"STRUCTDUMP_MAX_BYTES": text}).max_bytes == size


@pytest.mark.parametrize(
    ("keywords", "environ", "words"),
    [
        ({"level": "ful"}, {}, ["level=", "'ful'", "Did you mean 'full'", "off, low, medium, full"]),
        ({"pases": "x"}, {}, ["unknown setting 'pases'", "Did you mean 'passes'", "kernels"]),
        ({}, {"STRUCTDUMP_WHEN": "faliure"}, ["STRUCTDUMP_WHEN", "'failure'", "always"]),
        ({}, {"STRUCTDUMP_LEVLE": "low"}, ["'STRUCTDUMP_LEVLE'", "'STRUCTDUMP_LEVEL'"]),
        ({}, {"STRUCTDUMP_KINDS": "kernels"}, ["STRUCTDUMP_KINDS", "'kernel'", "output_code"]),
        ({}, {"STRUCTDUMP_PASSES": "re:("}, ["STRUCTDUMP_PASSES", "no regular expression"]),
        ({}, {"STRUCTDUMP_RANKS": "0,x"}, ["STRUCTDUMP_RANKS", "'x'"]),
        ({}, {"STRUCTDUMP_MAX_BYTES": "24 apples"}, ["STRUCTDUMP_MAX_BYTES", "KiB"]),
        ({}, {"STRUCTDUMP_OUTPUT": "{progam}.json"}, ["STRUCTDUMP_OUTPUT", "'program'"]),
        ({"redact_patterns": ["["]}, {}, ["redact_patterns=", "no regular expression"]),
        ({"level": "low", "when": 3, "redact": "perhaps"}, {}, ["when=", "redact="]),
    ],
)
def test_a_bad_value_names_the_valid_ones(keywords, environ, words):
    with pytest.raises(ConfigError) as caught:
        DumpConfig.resolve(keywords, environ)
    for word in words:
        assert word in str(caught.value)
    assert isinstance(caught.value, UsageError)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.toml", "level = ", "no valid TOML"),
        ("a.json", "{", "no valid JSON"),
        ("a.json", "[1]", "not a table"),
        ("a.toml", 'lvel = "low"', "Did you mean 'level'"),
        ("a.toml", 'level = "none"', "level in "),
        ("a.toml", "\ud83d", "no valid TOML"),
    ],
)
def test_bad_files(tmp_path, name, text, words):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(ConfigError, match=words):
        DumpConfig.resolve({}, {"STRUCTDUMP_CONFIG": str(path)})


def test_a_configuration_cannot_be_changed_and_holds_nothing_unknown():
    config = DumpConfig()
    with pytest.raises(ValueError, match="frozen"):
        config.level = "full"
    with pytest.raises(ValueError, match="Extra inputs"):
        DumpConfig(levle="low")


@given(st.dictionaries(st.sampled_from(sorted(DumpConfig.model_fields)), st.text(max_size=12), max_size=4))
def test_any_environment_gives_settings_or_one_kind_of_error(found):
    environ = {f"STRUCTDUMP_{k.upper()}": v for k, v in found.items()}
    try:
        config = DumpConfig.resolve(environ=environ)
    except ConfigError as error:
        assert "\n" not in str(error) or any("\n" in v for v in found.values())  # noqa: PT017 # either way
        return
    assert DumpConfig.resolve(config.model_dump(), {}) == config

"""The level table and the filters: one decision per artifact."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structdump import DumpConfig
from structdump.bundle.model import Kind
from structdump.levels import LEVELS, TABLE, cell, rank
from structdump.select.policy import Patterns, Policy

KINDS = Kind.__args__
ORDER = {"drop": 0, "index": 1, "winner": 2, "text": 3}


def decide(artifact, **settings):
    decision = Policy(DumpConfig(**settings)).decide(*artifact)
    return decision.action, decision.reason


# What each level is for, row by row: kind, stage, phase, changed; then low, medium, full.
@pytest.mark.parametrize(
    ("artifact", "cells"),
    [
        (("event", "error"), ("text", "text", "text")),
        (("event", "graph_break"), ("text", "text", "text")),
        (("event", "recompile"), ("text", "text", "text")),
        (("metrics", "compilation"), ("text", "text", "text")),
        (("graph", "captured"), ("text", "text", "text")),
        (("graph", "post_grad", "after"), ("text", "text", "text")),
        (("best_config", None), ("text", "text", "text")),
        (("kernel", None), ("index", "text", "text")),
        (("output_code", None), ("index", "text", "text")),
        (("repro", None), ("index", "text", "text")),
        (("graph", "joint"), ("index", "text", "text")),
        (("graph", "forward"), ("index", "text", "text")),
        (("graph", "after_split"), ("index", "text", "text")),
        (("pass", "a pass", "after", True), ("index", "text", "text")),
        (("guards", None), ("index", "text", "text")),
        (("source", "decompiled"), ("index", "text", "text")),
        (("autotune", "choices"), ("winner", "text", "text")),
        (("pass", "a pass", "after", False), ("index", "index", "text")),
        (("graph", "runtime_asserts"), ("index", "index", "text")),
        (("graph", "tensorify"), ("index", "index", "text")),
        (("graph", "post_grad", "before"), ("index", "index", "text")),
        (("candidate", None), ("drop", "index", "text")),
        (("bytecode", "original"), ("drop", "index", "text")),
        (("ir", "ttir"), ("drop", "index", "text")),
        (("trace", "chromium"), ("drop", "drop", "text")),
        (("cache", "key_lines"), ("drop", "drop", "text")),
        (("cache", "fx_graph"), ("text", "text", "text")),
    ],
)
def test_the_table(artifact, cells):
    assert tuple(cell(level, *artifact) for level in LEVELS) == cells


def test_a_higher_level_never_keeps_less():
    for row in TABLE:
        found = [ORDER[row.low], ORDER[row.medium], ORDER[row.full]]
        assert found == sorted(found), row.what
        assert row.full == "text"


def test_every_kind_has_a_row():
    assert {row.kind for row in TABLE} == set(KINDS)
    assert all(rank(kind) < len(TABLE) for kind in KINDS)


KERNEL = ("kernel", "triton_red_fused_sum_0")
PASS = ("pass", "reshape_fusion_pass", "reshape_fusion_pass", "after", False)
POST_GRAD = ("graph", "AFTER POST GRAD", "post_grad", "after")


@pytest.mark.parametrize(
    ("artifact", "settings", "expected"),
    [
        (KERNEL, {}, ("index", "level")),
        (KERNEL, {"level": "full"}, ("keep", "")),
        (KERNEL, {"kernels": "triton_red_*"}, ("keep", "")),
        (KERNEL, {"kernels": "TRITON red *"}, ("keep", "")),
        (KERNEL, {"kernels": r"re:_red_.*\d$"}, ("keep", "")),
        (KERNEL, {"kernels": "triton_poi_*", "level": "full"}, ("index", "filter:kernels")),
        (KERNEL, {"kernels": "!*sum*", "level": "full"}, ("index", "filter:kernels")),
        (KERNEL, {"kernels": "!*mul*", "level": "full"}, ("keep", "")),
        (KERNEL, {"kernels": "triton*,!*red*,*sum*"}, ("keep", "")),
        (KERNEL, {"kernels": "triton*,*sum*,!*red*"}, ("index", "filter:kernels")),
        (KERNEL, {"kinds": "graph", "level": "full"}, ("drop", "filter:kinds")),
        (KERNEL, {"kinds": "kernel"}, ("keep", "")),
        (KERNEL, {"kinds": "!kernel", "level": "full"}, ("drop", "filter:kinds")),
        (PASS, {}, ("index", "level")),
        (PASS, {"passes": "reshape fusion*"}, ("keep", "")),
        (PASS, {"passes": "AFTER POST GRAD", "level": "full"}, ("index", "filter:passes")),
        (POST_GRAD, {"passes": "AFTER POST GRAD"}, ("keep", "")),
        (POST_GRAD, {"passes": "after_post_grad"}, ("keep", "")),
        (POST_GRAD, {"passes": "post_grad"}, ("keep", "")),
        (("bytecode", "original", "original"), {"kinds": "*"}, ("keep", "")),
        (("bytecode", "original", "original"), {}, ("drop", "level")),
        (("best_config", "triton_a"), {"configs": "triton_b"}, ("index", "filter:configs")),
    ],
)
def test_filters(artifact, settings, expected):
    assert decide(artifact, **settings) == expected


def test_functions_choose_whole_compiles():
    policy = Policy(DumpConfig(functions=("forward", "!*_inner")))
    assert policy.decide("graph", "n", "captured", function="forward").action == "keep"
    assert policy.decide("graph", "n", "captured", function="other") == ("drop", "filter:functions")
    assert policy.decide("graph", "n", "captured", function="step_inner").action == "drop"
    assert policy.decide("graph", "n", "captured", function=None).action == "keep"


def test_passes_are_recorded_when_they_may_be_kept():
    assert Policy(DumpConfig(level="full")).wants_pass("anything")
    assert not Policy(DumpConfig(level="medium")).wants_pass("anything")
    assert Policy(DumpConfig(level="low", every_pass=True)).wants_pass("anything")
    assert Policy(DumpConfig(level="low", passes=("*fusion*",))).wants_pass("a_fusion_pass")
    assert not Policy(DumpConfig(level="full", passes=("*fusion*",))).wants_pass("constant_fold")


def test_only_the_winner_is_kept_at_low_unless_asked_for():
    assert Policy(DumpConfig(level="low")).trims_choices("mm")
    assert not Policy(DumpConfig(level="low", configs=("mm",))).trims_choices("mm")
    assert not Policy(DumpConfig(level="medium")).trims_choices("mm")


@given(
    st.lists(st.sampled_from(["a*", "!a*", "*b", "!*b", "re:c", "!re:c"]), max_size=5),
    st.text("abc", max_size=3),
)
def test_the_last_pattern_that_matches_decides(patterns, name):
    verdict = Patterns(patterns).verdict(name)
    matching = [
        p
        for p in patterns
        if name and ({"a*": name[0] == "a", "*b": name[-1] == "b", "re:c": "c" in name}[p.lstrip("!")])
    ]
    if matching:
        assert verdict == (not matching[-1].startswith("!"))
    else:
        assert verdict is (False if patterns and not patterns[0].startswith("!") else None)

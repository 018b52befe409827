from __future__ import annotations

import base64
import hashlib
import json
import re
import stat
import zlib
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_bundles import bundle, everything, from_log
from sample_bundles import write_small

from structdump.bundle.loaded import LoadedBundle
from structdump.bundle.reader import load
from structdump.cli import main
from structdump.errors import BundleError, UsageError
from structdump.report import html
from structdump.report.html import render_html, write_html
from structdump.report.html_texts import TextPack

TEMPLATES = Path(html.__file__).parent / "templates"
HOSTILE = "</script><img src=x onerror=alert(1)><!--<script>"


class Page(HTMLParser):
    """Every element with its attributes, and the content of those that hold text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.contents: dict[str, str] = {}
        self._open = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = dict(attrs).get("id") or tag

    def handle_data(self, data: str) -> None:
        self.contents[self._open] = self.contents.get(self._open, "") + data

    def handle_endtag(self, tag: str) -> None:
        self._open = ""


def unpack(page: Page, name: str) -> bytes:
    return zlib.decompress(base64.b64decode(page.contents[name]))


def head(page: Page) -> dict:
    return json.loads(unpack(page, "head"))


def rendered(*bundles: LoadedBundle, names: tuple[str, ...] = ("run.json.zst",)) -> str:
    return "".join(render_html(*bundles, names=names))


@pytest.fixture
def small(tmp_path: Path) -> LoadedBundle:
    return load(write_small(tmp_path))


def test_nothing_outside_the_file_is_named_and_nothing_in_it_runs_but_the_script(tmp_path: Path) -> None:
    text = rendered(everything(tmp_path))
    page = Page(text)
    scripts = [a for tag, a in page.elements if tag == "script"]
    assert [a for a in scripts if a.get("type") != "application/octet-stream"] == [{}]
    for tag, attributes in page.elements:
        assert tag not in {"link", "iframe", "img", "object", "embed", "base", "form", "svg"}
        assert not {"src", "style", "action", "srcset"} & attributes.keys()
        assert not [name for name in attributes if name.startswith("on")]
        assert (attributes.get("href") or "#").startswith("#")
    own = re.sub(r"<script type=.*?</script>", "", text)
    library = (TEMPLATES / "vendor/diff-sequences.js").read_text()
    assert "://" not in own.replace(library, "")


def test_the_policy_allows_this_style_and_this_script_alone(small: LoadedBundle) -> None:
    page = Page(rendered(small))
    policy = next(
        a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))

    def hashed(name: str) -> str:
        digest = hashlib.sha256(page.contents[name].encode()).digest()
        return f"'sha256-{base64.b64encode(digest).decode()}'"

    assert rules == {
        "default-src": "'none'",
        "script-src": hashed("script"),
        "style-src": hashed("style"),
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    names = [tag for tag, _ in page.elements]
    policy_at = next(i for i, (_, a) in enumerate(page.elements) if "http-equiv" in a)
    assert policy_at < names.index("style")
    assert policy_at < names.index("script")


def test_every_text_can_be_unpacked_again(tmp_path: Path) -> None:
    source = from_log("train", tmp_path)
    page = Page(rendered(source))
    data = head(page)
    chunks = {int(a["id"][6:]) for _, a in page.elements if (a.get("id") or "").startswith("chunk-")}
    assert chunks == {place[0] for place in data["texts"].values()} == set(range(len(chunks)))
    inflated = {n: unpack(page, f"chunk-{n}") for n in chunks}
    used = {a.digest for a in source.artifacts if a.digest}
    assert set(data["texts"]) == used
    for digest, (chunk, start, length) in data["texts"].items():
        assert inflated[chunk][start : start + length].decode() == source.texts[digest]


def test_the_head_has_what_the_bundle_has(tmp_path: Path) -> None:
    source = everything(tmp_path)
    side = head(Page(rendered(source)))["sides"][0]
    assert [c["id"] for c in side["compiles"]] == [c.id for c in source.compiles]
    assert [(a["kind"], a["name"]) for a in side["artifacts"]] == [(a.kind, a.name) for a in source.artifacts]
    assert side["environment"]["versions"] == source.environment.versions
    kernel = next(a for a in side["artifacts"] if a["kind"] == "kernel")
    assert kernel["kernel"]["best_config"]["XBLOCK"] == 64
    guards = next(a for a in side["artifacts"] if a["kind"] == "guards")
    assert (guards["omitted"], guards["needs"]) == ({"reason": "level", "bytes": 900}, "medium")
    assert side["hook_errors"] == [{"hook": "guards", "error": "boom", "count": 1}]


def test_what_a_bundle_says_is_never_markup(tmp_path: Path) -> None:
    artifacts = [
        {"kind": "graph", "stage": HOSTILE, "name": HOSTILE, "compile_id": "0/0", "text": HOSTILE},
        {
            "kind": "kernel",
            "name": HOSTILE,
            "kernel": {"name": HOSTILE, "ops": [HOSTILE]},
            "data": {HOSTILE: HOSTILE},
        },
    ]
    compiles = [{"id": "0/0", "function": {"name": HOSTILE, "file": HOSTILE, "line": 1}, "status": "ok"}]
    source = bundle(artifacts, compiles, tmp_path, program=HOSTILE)
    text = rendered(source, names=(HOSTILE,))
    plain = rendered(everything(tmp_path / "plain"))
    assert "<img" not in text
    assert [tag for tag, _ in Page(text).elements] == [tag for tag, _ in Page(plain).elements]
    assert Page(text).contents["title"].startswith(HOSTILE)


@pytest.mark.parametrize("text", ["\ud800 lone", "\x00\x1b[31m\u202e", "x" * 1_000_000, ""])
def test_odd_texts_pass(text: str, tmp_path: Path) -> None:
    source = bundle([{"kind": "event", "name": "odd", "text": text}], [], tmp_path)
    page = Page(rendered(source))
    (place,) = head(page)["texts"].values()
    stored = source.artifacts[0].text
    assert stored is not None
    assert unpack(page, "chunk-0")[place[1] :].decode() == stored.encode("utf-8", "replace").decode()


def test_the_same_bundle_gives_the_same_bytes(tmp_path: Path) -> None:
    assert rendered(everything(tmp_path / "a")) == rendered(everything(tmp_path / "b"))


def test_a_text_that_two_bundles_share_is_held_once(tmp_path: Path) -> None:
    a, b = everything(tmp_path / "a"), everything(tmp_path / "b", relu="        return (mm,)\n")
    data = head(Page(rendered(a, b, names=("a", "b"))))
    assert [side["name"] for side in data["sides"]] == ["a", "b"]
    assert set(data["texts"]) == {x.digest for x in [*a.artifacts, *b.artifacts] if x.digest}
    assert data["pairs"]["compiles"] == [[0, 0], [1, 1]]


@given(st.lists(st.text(max_size=50), max_size=30), st.integers(1, 80))
def test_packing_loses_nothing(texts: list[str], size: int) -> None:
    pairs = [(f"d{i}", text) for i, text in enumerate(texts)]
    pack = TextPack(size)
    chunks = {n: zlib.decompress(base64.b64decode(data)) for n, data in pack.chunks(pairs * 2)}
    for digest, text in pairs:
        chunk, start, length = pack.places[digest]
        assert chunks[chunk][start : start + length] == text.encode("utf-8", "replace")
    assert sum(map(len, chunks.values())) == sum(place[2] for place in pack.places.values())


def test_writing_is_whole_or_not_at_all(small: LoadedBundle, tmp_path: Path) -> None:
    target = tmp_path / "out" / "report.html"
    target.parent.mkdir()
    size = write_html(target, small)
    assert size == target.stat().st_size
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    with pytest.raises(UsageError, match="--force"):
        write_html(target, small)
    before = target.read_bytes()
    broken = load(write_small(tmp_path))
    broken.texts = _Damaged()
    with pytest.raises(BundleError):
        write_html(target, broken, overwrite=True)
    assert target.read_bytes() == before
    assert [p.name for p in target.parent.iterdir()] == ["report.html"]
    write_html(target, small, overwrite=True)
    with pytest.raises(OSError, match="No such file"):
        write_html(tmp_path / "absent" / "report.html", small)


class _Damaged(dict):
    def items(self):
        raise BundleError("the texts are damaged")


def test_every_file_of_the_templates_is_used_and_none_writes_markup() -> None:
    assert {p.stem for p in (TEMPLATES / "js").iterdir()} == set(html._SCRIPTS)
    assert {p.stem for p in (TEMPLATES / "css").iterdir()} == set(html._STYLES)
    banned = (
        r"innerHTML|outerHTML|insertAdjacent|document\.write|srcdoc|DOMParser|\beval\(|new Function|fetch\("
    )
    for path in [*TEMPLATES.glob("js/*.js"), *TEMPLATES.glob("vendor/*.js")]:
        text = path.read_text()
        assert not re.search(banned, text), path
        assert "</script" not in text.lower(), path
        assert len(text.splitlines()) <= 300 or path.parent.name == "vendor", path


def test_the_scripts_share_one_scope_without_a_clash() -> None:
    found = [
        name
        for path in TEMPLATES.glob("js/*.js")
        for name in re.findall(r"^(?:async function|function|const|let|class) (\w+)", path.read_text(), re.M)
    ]
    assert len(found) > 100
    assert sorted(found) == sorted(set(found))


def test_the_library_is_as_published() -> None:
    library = (
        TEMPLATES / "vendor/diff-sequences.js"
    ).read_bytes()  # @jest/diff-sequences 30.5.0, build/index.js
    assert len(library) < 30_000
    digest = hashlib.sha256(library).hexdigest()
    assert digest == "40d86d4aa35d6de70b4f710cc8766fc48ddb006b4a8843f71349ffb3dcedb002"
    assert "MIT License" in (TEMPLATES / "vendor/diff-sequences.LICENSE").read_text()


def test_the_command_writes_a_report_and_keeps_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    source = write_small(tmp_path)
    assert main(["html", str(source)]) == 0
    assert capsys.readouterr().out == "small.html\n"
    assert Page((tmp_path / "small.html").read_text()).contents["title"] == "train · structdump"
    assert main(["html", str(source)]) == 2
    assert "--force" in capsys.readouterr().err
    assert main(["html", str(source), str(source), "-o", "two.html"]) == 0
    sides = head(Page((tmp_path / "two.html").read_text()))["sides"]
    assert [side["name"] for side in sides] == ["small.json.zst"] * 2
    assert main(["html", str(source), "-o", "absent/report.html"]) == 2
    assert "absent/report.html cannot be written" in capsys.readouterr().err
    (tmp_path / "damaged.json.zst").write_bytes(source.read_bytes()[:-9])
    assert main(["html", "damaged.json.zst"]) == 3
    assert not (tmp_path / "damaged.html").exists()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a.json.zst", "a.html"),
        ("a.json", "a.html"),
        ("a.json.zst.journal", "a.html"),
        ("trace.log", "trace.html"),
        ("rank_0", "rank_0.html"),
        (".json", "report.html"),
    ],
)
def test_a_report_is_called_after_its_bundle(given: str, expected: str) -> None:
    assert html.file_name(Path("runs") / given) == expected

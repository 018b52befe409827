"""The report in a real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from report_bundles import CLAMP, GRAPH, RELU, bundle, everything, from_log

from structdump.bundle.loaded import LoadedBundle
from structdump.report.html import write_html

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
if not Path(CHROMIUM).exists():
    pytest.skip(f"no Chromium at {CHROMIUM}; apt-get install chromium", allow_module_level=True)

OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
HOSTILE = "</script><img src=x onerror=\"document.title='owned'\">&amp;\u202e\x1b[2J"
expect = sync_api.expect


class Report:
    """An open report: its page, and everything the browser complained of or asked the outside for."""

    def __init__(self, page: sync_api.Page, path: Path) -> None:
        self.page = page
        self.path = path
        self.problems: list[str] = []
        page.on("console", lambda m: self.problems.append(f"console: {m.text}"))
        page.on("pageerror", lambda e: self.problems.append(f"error: {e}"))
        page.on("request", self._request)
        self.go("#/overview")

    def _request(self, request: sync_api.Request) -> None:
        if not request.url.startswith((self.path.as_uri(), "blob:")):
            self.problems.append(f"request: {request.url}")

    def go(self, route: str) -> None:
        self.page.goto(self.path.as_uri() + route)
        self.page.wait_for_selector("html[data-ready]")
        self.page.wait_for_selector("main:not([aria-busy]) h1")

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)

    @property
    def main(self) -> sync_api.Locator:
        return self.page.locator("#main")

    def title(self, text: str) -> None:
        expect(self.main.locator("h1")).to_contain_text(text)

    def names(self, selector: str) -> list[str]:
        return self.page.locator(selector).all_inner_texts()


Opener = Callable[..., Report]


@pytest.fixture(scope="module")
def browser() -> Iterator[sync_api.Browser]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS.split())
        yield browser
        browser.close()


@pytest.fixture
def open_report(browser: sync_api.Browser, tmp_path: Path) -> Iterator[Opener]:
    """Open a report of some bundles; at the end, nothing may have gone wrong in it."""
    opened: list[Report] = []

    def opener(*bundles: LoadedBundle, width: int = 1280, script: str = "", **options: object) -> Report:
        path = tmp_path / f"report-{len(opened)}.html"
        write_html(path, *bundles, names=("a.json.zst", "b.json.zst"))
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        page = context.new_page()
        if script:
            page.add_init_script(script)
        opened.append(Report(page, path))
        return opened[-1]

    yield opener
    for report in opened:
        report.page.context.close()
        assert report.problems == []


@pytest.fixture
def report(open_report: Opener, tmp_path: Path) -> Report:
    return open_report(everything(tmp_path / "bundle"))


def test_the_overview_says_what_compiled_and_shows_failures_in_full(report: Report) -> None:
    report.title("train")
    expect(report.main.locator(".failure")).to_contain_text("LoweringException: no lowering for twice")
    report.main.locator(".failure summary").click()
    expect(report.main.locator(".failure .trace")).to_contain_text("Traceback (most recent call last)")
    table = report.main.get_by_role("table", name="Compiles")
    expect(table).to_contain_text("forward")
    expect(table.get_by_role("row", name="1/0")).to_contain_text("failed")
    expect(report.main).to_contain_text("NVIDIA H200")
    expect(report.main).to_contain_text("Hook guards failed once: boom")
    stats = " ".join(report.names(".stats li"))
    assert stats == "2 compiles 1 failure 1 graph break 0 recompiles 2 kernels"


def test_the_tree_marks_stages_that_changed_failed_or_are_not_there(report: Report) -> None:
    side = report.page.get_by_role("navigation", name="Compiles and stages")
    expect(side.locator(".compile-node.failed")).to_contain_text("failed")
    side.locator("summary", has_text="forward").click(position={"x": 8, "y": 10})
    stages = side.locator(".compile-node[open] a.stage")
    changed = ["changed the graph: clamping5 nodes", "changed the graph: post_grad5 nodes"]
    expect(stages).to_have_text(["captured5 nodes", "forward5 nodes", *changed, "output_code"])
    expect(side.get_by_text("4 passes without a change")).to_be_visible()
    side.get_by_text("4 passes without a change").click()
    expect(side.get_by_role("link", name="changed nothing: quiet_pass_2")).to_be_visible()
    side.locator("summary", has_text="More").click()
    expect(side.get_by_role("link", name="text not in the bundle: guards")).to_be_visible()


def test_n_and_p_step_through_stages_and_shift_through_changes(report: Report) -> None:
    seen = []
    for _ in range(6):
        report.press("n")
        report.page.wait_for_timeout(150)
        seen.append(report.main.locator("h1").inner_text())
    assert seen == ["captured", "forward", "clamping", "post_grad", "output_code", "captured"]
    report.press("p")
    report.title("output_code")
    expect(report.page.locator("#side [aria-current]")).to_contain_text("output_code")
    report.press("Shift+P")
    report.title("post_grad")
    report.press("Shift+P")
    report.title("clamping")
    report.press("Shift+P")
    report.title("clamping")
    expect(report.page.locator("#live")).to_have_text("No earlier stage")


def test_a_text_is_coloured_and_numbered(report: Report) -> None:
    report.go("#/stage/a1")
    rows = report.main.locator(".text .row")
    expect(rows).to_have_count(8)
    expect(rows.nth(3).locator(".op")).to_have_text("torch.ops.aten.mm.default")
    expect(rows.nth(3).locator(".ty")).to_have_text('"f32[8, 8]"')
    assert "".join(t + "\n" for t in rows.locator("code").all_text_contents()) == GRAPH + RELU
    with report.page.expect_download() as download:
        report.main.get_by_role("button", name="Save the text").click()
    assert download.value.suggested_filename == "forward.py"
    assert Path(download.value.path()).read_text() == GRAPH + RELU


def test_the_diff_is_against_the_text_before_the_change(report: Report) -> None:
    report.go("#/stage/a8")
    report.title("post_grad")
    report.press("d")
    expect(report.main.locator(".summary")).to_contain_text("0/0 post_grad (before)→0/0 post_grad")
    expect(report.main.locator(".pair .gone")).to_contain_text(["clamp_min.default", "return (clamp,)"])
    expect(report.main.locator(".pair .new")).to_contain_text(["relu.default", "return (relu,)"])
    expect(report.main.locator(".summary .pairing")).to_contain_text(
        ["aten.clamp_min.default−1", "aten.relu.default+1"]
    )
    report.press("Shift+P")
    report.title("clamping")
    expect(report.main.locator(".summary")).to_contain_text("0/0 forward→0/0 clamping")
    report.press("d")
    expect(report.main.locator(".text")).to_be_visible()


def test_any_two_stages_can_be_compared(report: Report) -> None:
    report.go("#/stage/a9")
    expect(report.main.get_by_role("button", name="Diff")).to_be_disabled()
    report.main.get_by_label("Against").select_option(label="captured")
    expect(report.main.locator(".summary")).to_contain_text("0/0 captured→0/0 output_code")
    report.go("#/stage/a1?mode=diff&base=a5")
    expect(report.main.locator(".diff")).to_have_text("No differences.")
    report.go("#/stage/a1?mode=diff&base=a8")
    report.main.get_by_role("button", name="Layout: side by side").click()
    expect(report.main.locator(".diff.unified")).to_be_visible()
    expect(report.main.locator(".diff.unified .pair")).to_have_count(0)


def test_search_finds_names_and_texts_and_leads_to_the_line(report: Report) -> None:
    report.press("/")
    report.page.keyboard.type("clamp_min")
    expect(report.main.locator(".facts")).to_contain_text("1 match in 1 text; 0 names")
    expect(report.main.locator(".results mark")).to_have_count(1)
    report.main.locator(".results a", has_text="clamping").click()
    report.title("clamping")
    expect(report.main.locator(".row.chosen mark")).to_have_text("clamp_min")
    report.page.get_by_role("searchbox").fill("triton_poi")
    names = report.main.locator(".results").first
    expect(names.locator("a", has_text="triton_poi_fused_relu_0").first).to_be_visible()
    report.page.get_by_role("searchbox").fill("(.*[")
    expect(report.main.locator(".facts")).to_contain_text("0 matches in 0 texts")


def test_a_kernel_leads_to_its_graph_lines_and_they_to_it_and_to_python(report: Report) -> None:
    report.go("#/kernels")
    report.main.get_by_role("link", name="triton_poi_fused_relu_0").click()
    report.title("triton_poi_fused_relu_0")
    expect(report.main.locator(".card")).to_contain_text("XBLOCK64")
    report.main.get_by_role("button", name="aten.relu").click()
    report.title("post_grad")
    expect(report.main.locator(".row.chosen")).to_contain_text("relu: ")
    strip = report.main.locator(".strip")
    expect(strip).to_contain_text("Kernel triton_poi_fused_relu_0")
    report.press("ArrowUp")
    report.main.locator(".row", has_text="mm: ").click()
    expect(strip).to_contain_text("Kernels with this op extern_kernels.mm")
    report.main.locator(".text").press("ArrowDown")
    expect(report.main.locator(".row.chosen")).to_have_attribute("data-n", "5")
    report.main.locator(".row", has_text="relu: ").click()
    strip.get_by_role("link", name="triton_poi_fused_relu_0").click()
    report.title("triton_poi_fused_relu_0")
    report.main.get_by_role("button", name="h", exact=True).click()
    report.title("captured")
    expect(report.main.locator(".row.chosen")).to_contain_text("h: ")
    report.main.locator(".strip").get_by_role("link", name="alex/train.py:12").click()
    report.title("Python source")
    line = report.main.locator(".lines .chosen")
    expect(line.locator("> code")).to_have_text("h = x @ w")
    line.get_by_role("link", name="post_grad").click()
    report.title("post_grad")
    expect(report.main.locator(".row.hit")).to_have_count(1)


def test_a_source_comment_and_a_kernel_name_in_code_are_links(report: Report) -> None:
    report.go("#/stage/a8")
    report.main.locator(".row a.src").first.click()
    report.title("Python source")
    expect(report.main.locator(".lines .badge")).to_have_text("graph break")
    report.go("#/stage/a9")
    report.main.locator(".row a", has_text="triton_poi_fused_relu_0").first.click()
    report.title("triton_poi_fused_relu_0")


def test_kernels_within_output_code_are_coloured_as_code(report: Report) -> None:
    report.go("#/stage/a9")
    expect(report.main.locator(".row .at")).to_have_text(["@triton.jit"])
    expect(report.main.locator(".row .df")).to_have_text(["triton_poi_fused_relu_0", "call"])


def test_tables_sort_and_have_bars(report: Report) -> None:
    report.go("#/stage/a13")
    table = report.main.get_by_role("table", name="Choices for mm")
    first = table.locator("tbody th")
    expect(first).to_have_text(["triton_mm_4 winner", "extern_mm", "triton_mm_2"])
    widths = table.locator(".fill").evaluate_all("all => all.map(e => parseFloat(e.style.width))")
    assert widths == [25, 50, 100]
    expect(table.locator("[aria-sort=ascending]")).to_have_text("Time")
    table.get_by_role("button", name="Time").click()
    expect(first).to_have_text(["triton_mm_2", "extern_mm", "triton_mm_4 winner"])
    table.get_by_role("button", name="Choice").click()
    expect(first).to_have_text(["extern_mm", "triton_mm_2", "triton_mm_4 winner"])
    report.go("#/configs")
    configs = report.main.get_by_role("table", name="Launch configurations")
    expect(configs.locator("tbody tr")).to_contain_text(["XBLOCK64num_warps4"])
    expect(configs).to_contain_text("12.0 ms")
    report.go("#/autotune")
    expect(report.main.get_by_role("table", name="Tuned operations")).to_contain_text("12.5 µs")


def test_kernels_can_be_filtered(report: Report) -> None:
    report.go("#/kernels")
    rows = report.main.locator("tbody tr")
    expect(rows).to_have_count(2)
    report.main.get_by_role("searchbox", name="Filter kernels").fill("relu")
    expect(rows).to_have_count(1)


def test_the_timeline_places_phases_and_zooms(report: Report) -> None:
    report.go("#/timeline")
    span = report.main.get_by_role("button", name="inductor 2.00 s")
    box, lane = span.bounding_box(), report.main.locator(".flame").first.bounding_box()
    assert box is not None
    assert lane is not None
    assert box["width"] == pytest.approx(lane["width"] / 2, rel=0.02)
    assert box["x"] - lane["x"] == pytest.approx(lane["width"] / 4, rel=0.02)
    expect(report.main.locator(".durations")).to_contain_text("inductor")
    span.click()
    expect(report.main.get_by_role("button", name="dynamo 4.00 s")).to_be_visible()
    report.main.get_by_role("button", name="Whole run").click()
    expect(report.main.get_by_role("button", name="Whole run")).to_be_hidden()


def test_what_is_not_kept_says_how_to_have_it(report: Report) -> None:
    report.go("#/stage/a14")
    expect(report.main.locator(".note")).to_contain_text("STRUCTDUMP_LEVEL=medium keeps it.")
    expect(report.main.locator(".note")).to_contain_text("900 B")


def test_colours_follow_the_system_and_the_toggle(open_report: Opener, tmp_path: Path) -> None:
    report = open_report(everything(tmp_path / "bundle"), color_scheme="dark")

    def background() -> str:
        return str(report.page.evaluate("getComputedStyle(document.body).backgroundColor"))

    dark = background()
    toggle = report.page.locator("#theme")
    expect(toggle).to_have_attribute("aria-label", "Colours: automatic")
    toggle.click()
    light = background()
    assert (dark, light) == ("rgb(21, 22, 26)", "rgb(255, 255, 255)")
    toggle.click()
    assert background() == dark
    report.go("#/kernels")
    expect(toggle).to_have_attribute("aria-label", "Colours: dark")


PAGES = ["overview", "compile/a0", "stage/a8?mode=diff", "stage/a9", "stage/a13", "kernels", "configs"]
PAGES += ["autotune", "source", "artifacts", "search?q=mm", "timeline"]


def test_a_narrow_window_holds_every_page(open_report: Opener, tmp_path: Path) -> None:
    report = open_report(everything(tmp_path / "bundle"), width=420)
    widths = "[document.documentElement, document.getElementById('main')].map((e) => e.scrollWidth)"
    for route in PAGES:
        report.go(f"#/{route}")
        assert max(report.page.evaluate(widths)) <= 420, route
    side = report.page.get_by_role("navigation", name="Compiles and stages")
    for page in ("Timeline", "Kernels"):
        expect(side).to_be_hidden()
        report.page.get_by_role("button", name="Compiles and stages").click()
        expect(side).to_be_visible()
        side.get_by_role("link", name=page).click()
        report.title(page)
    expect(side).to_be_hidden()
    report.page.get_by_role("button", name="Search", exact=True).click()
    report.page.keyboard.type("clamp_min")
    expect(report.main.locator(".facts")).to_contain_text("1 match in 1 text")


def test_every_control_has_a_name(report: Report) -> None:
    for route in ("overview", "stage/a8?mode=diff", "kernels", "timeline", "source"):
        report.go(f"#/{route}")
        for role in ("button", "link", "searchbox", "combobox", "checkbox", "navigation", "table"):
            for control in report.page.get_by_role(role).all():
                snapshot = control.aria_snapshot()
                assert '"' in snapshot or ": " in snapshot, (route, role, snapshot)


def test_hostile_names_and_texts_stay_text(open_report: Opener, tmp_path: Path) -> None:
    own = {"name": HOSTILE, "compile_id": HOSTILE, "stage": HOSTILE, "text": HOSTILE}
    tuned = {"operation": HOSTILE, "winner": HOSTILE, "choices": [{"name": HOSTILE, "seconds": 1.0}]}
    kernel = {"name": HOSTILE, "ops": [HOSTILE], "nodes": [HOSTILE], "best_config": {HOSTILE: HOSTILE}}
    frame = {"file": HOSTILE, "line": 1, "name": HOSTILE, "code": HOSTILE}
    artifacts = [
        {"kind": "graph", **own},
        {
            "kind": "graph",
            **own,
            "text": f"    # File: {HOSTILE}:1 in f, code: {HOSTILE}\n    a = {HOSTILE}\n",
        },
        {"kind": "kernel", **own, "kernel": kernel},
        {"kind": "best_config", **own, "kernel": kernel},
        {"kind": "autotune", **own, "autotune": tuned},
        {"kind": "event", "name": HOSTILE, "data": {HOSTILE: HOSTILE}, "omitted": {"reason": HOSTILE}},
    ]
    failure = {"type": HOSTILE, "message": HOSTILE, "traceback": HOSTILE, "user_frame": frame}
    compiles = [
        {"id": HOSTILE, "function": {"name": HOSTILE, "file": HOSTILE, "line": 1}, "status": "failed"}
        | {
            "error": failure,
            "graph_breaks": [{"reason": HOSTILE, "stack": [frame]}],
            "symbols": {HOSTILE: HOSTILE},
            "phases": {HOSTILE: 1.0},
        }
    ]
    state = {
        "environment": {"versions": {HOSTILE: HOSTILE}, "configs": {HOSTILE: {HOSTILE: 1}}},
        "redactions": {HOSTILE: 1},
        "completeness": {"verdict": "warm", "reasons": [HOSTILE]},
    }
    report = open_report(bundle(artifacts, compiles, tmp_path / "b", program=HOSTILE, **state))
    routes = [r for r in PAGES if not r.startswith(("stage", "search"))] + ["search?q=img"]
    routes += [f"stage/a{i}{mode}" for i in range(6) for mode in ("", "?mode=diff&base=a0")]
    for route in routes:
        report.go(f"#/{route}")
        report.page.wait_for_timeout(50)
        assert report.page.locator("img").count() == 0
        assert report.page.title() != "owned"
        shown = report.main.text_content() or ""
        assert "img src=x" in shown, route
        assert not {"\u202e", "\x1b"} & set(shown), route
    report.go("#/stage/a0")
    expect(report.main.locator(".text code")).to_have_text(
        HOSTILE.replace("\u202e", "\\u{202e}").replace("\x1b", "\\u{1b}")
    )


def test_a_line_of_a_megabyte_is_cut_until_asked_for(open_report: Opener, tmp_path: Path) -> None:
    text = "x = '" + "a" * 1_000_000 + "'\nshort = 1\n"
    source = bundle([{"kind": "source", "name": "long", "text": text}] * 2, [], tmp_path / "b")
    report = open_report(source)
    report.go("#/stage/a0")
    expect(report.main.locator(".row")).to_have_count(2)
    assert len(report.main.locator(".row").first.inner_text()) < 5_000
    report.main.get_by_role("button", name="more characters").click()
    assert len(report.main.locator(".row code").first.text_content() or "") == 1_000_006
    report.go("#/stage/a0?mode=diff&base=a1")
    expect(report.main.locator(".diff")).to_have_text("No differences.")


def test_texts_are_unpacked_when_they_are_looked_at(open_report: Opener, tmp_path: Path) -> None:
    count = """window.unpacked = 0;
        const Native = DecompressionStream;
        window.DecompressionStream = class {
          constructor(format) { window.unpacked++; return new Native(format); }
        };"""
    report = open_report(from_log("llama", tmp_path), script=count)
    assert report.page.evaluate("window.unpacked") == 1
    report.press("n")
    report.title("captured")
    expect(report.main.locator(".row").first).to_be_visible()
    assert report.page.evaluate("window.unpacked") == 2
    rows = report.main.locator(".row").count()
    assert 80 <= rows < 400  # the rest is plain until it comes near the window
    report.main.evaluate("main => main.scrollTo(0, main.scrollHeight)")
    expect(report.main.locator(".block").last.locator(".row").first).to_be_visible()


def test_two_bundles_stand_side_by_side(open_report: Opener, tmp_path: Path) -> None:
    a = everything(tmp_path / "a")
    b = everything(tmp_path / "b", relu=CLAMP, xblock=128)
    report = open_report(a, b)
    report.title("Two bundles, side by side")
    expect(report.main.get_by_role("table", name="Compiles")).to_contain_text("Time B")
    expect(report.main.locator(".partings li")).to_have_text("0/0 forward: post_grad · inference")
    side = report.page.locator("#side")
    side.locator("summary", has_text="forward").click(position={"x": 8, "y": 10})
    expect(side.locator("a.stage", has=report.page.locator(".badge", has_text="≠"))).to_have_count(1)
    side.locator("a.stage", has_text="post_grad").click()
    expect(report.main.locator(".summary")).to_contain_text("A 0/0 post_grad→B 0/0 post_grad")
    expect(report.main.locator(".pair .gone")).to_contain_text(["relu.default", "return (relu,)"])
    report.press("p")
    report.title("clamping")
    expect(report.main.locator(".diff")).to_have_text("No differences.")
    report.go("#/kernels")
    expect(report.main.locator("tbody tr").first).to_contain_text("config differs")


@pytest.mark.parametrize("case", ["llama", "vllm", "indfail", "train"])
def test_real_logs_open_on_every_page(open_report: Opener, tmp_path: Path, case: str) -> None:
    source = from_log(case, tmp_path)
    report = open_report(source)
    for route in ("kernels", "timeline", "source", "artifacts", "search?q=aten", "compile/a0"):
        report.go(f"#/{route}")
        expect(report.main.locator("h1")).not_to_have_text("This cannot be shown")
    report.go("#/overview")
    expect(report.main.locator(".failure")).to_have_count(1 if case == "indfail" else 0)
    for _ in range(40):
        report.press("n")
    expect(report.main.locator(".text, .note").first).to_be_visible()

"""The page in a real browser: what it shows, how it answers, and who can use it."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from orchestrator.report.page.render import page
from tests.report.page import sample
from tests.report.page.browsing import LONGEST, Guarded, Opened, driver, started
from tests.requirements import need

pytestmark = pytest.mark.slow
AXE = "axe_playwright_python"


@pytest.fixture(scope="module")
def browser() -> Iterator[Guarded]:
    chromium = shutil.which("chromium")
    need(chromium, "chromium")
    need(importlib.util.find_spec("playwright") is not None, "playwright")
    assert chromium is not None
    with driver() as kind, started(kind, chromium) as found:
        yield found


@pytest.fixture(autouse=True)
def limited(browser: Guarded) -> Iterator[None]:
    """A test that waits for ever fails instead."""
    with browser.at_most(LONGEST):
        yield


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    documents = {
        "campaign": sample.campaign(),
        "comparison": sample.comparison(),
        "large": sample.large(1000),
        "bare": sample.bare(),
    }
    for name, document in documents.items():
        (folder / f"{name}.html").write_text(page(document))
    return {name: folder / f"{name}.html" for name in documents}


@pytest.fixture(scope="module")
def campaign(browser: Guarded, files: dict[str, Path]) -> Iterator[Opened]:
    opened = Opened(browser, files["campaign"], viewport={"width": 1400, "height": 1000})
    yield opened
    opened.page.close()


@pytest.fixture(autouse=True)
def untouched(request: pytest.FixtureRequest, limited: None) -> None:
    """Every test starts from the page as it opens."""
    if "campaign" in request.fixturenames:
        opened = request.getfixturevalue("campaign")
        opened.page.reload()
        opened.page.wait_for_selector("html[data-ready]")


def shown(opened: Opened) -> list[str]:
    """Return the functions in the rows of the call tree."""
    names = {item["id"]: item["name"].rpartition("->")[2] for item in sample.campaign()["callpaths"]}
    return [names[key] for key in opened.rows()]


@pytest.mark.parametrize("name", ["campaign", "comparison", "large", "bare"])
def test_it_opens_without_a_complaint_and_without_a_network(
    browser: Guarded, files: dict[str, Path], name: str
) -> None:
    opened = Opened(browser, files[name], viewport={"width": 900, "height": 900})
    opened.scroll()
    opened.page.evaluate("dispatchEvent(new Event('beforeprint')); dispatchEvent(new Event('afterprint'))")
    assert not opened.complaints
    assert opened.requests == [files[name].as_uri()]
    opened.page.close()


@pytest.mark.parametrize(("p", "n"), [(0, 0), (3, 6), (9, 2)])
def test_sliders_show_the_documents_numbers(campaign: Opened, p: int, n: int) -> None:
    campaign.move("p", p)
    campaign.move("n", n)
    document = sample.campaign()
    expected = {
        item["id"]: sample.unpacked(item["value"]).reshape(document["grid"]["shape"])[p, n]
        for item in document["callpaths"]
    }
    rows = campaign.rows()
    assert {key: row["value"] for key, row in rows.items()} == {
        key: pytest.approx(expected[key]) for key in rows
    }
    assert rows[0]["text"].replace("\u202f", "") == f"{expected[0]:#.4g}".rstrip(".")
    share = 100 * expected[2] / expected[0]
    assert float(rows[2]["share"].split("\u202f")[0]) == pytest.approx(
        share, abs=0.5 if share > 9.9 else 0.05
    )


def test_sliders_obey_the_keyboard_and_say_where_they_are(campaign: Opened) -> None:
    slider = campaign.page.locator("#slider-p")
    slider.focus()
    stops = sample.campaign()["parameters"][0]["stops"]
    assert slider.get_attribute("aria-valuetext") == "1\u202f024, beyond the measured range"
    for _ in range(len(stops) - 1 - stops.index(128)):
        campaign.page.keyboard.press("ArrowLeft")
    campaign.frame()
    assert slider.get_attribute("aria-valuetext") == "128, measured"
    campaign.page.get_by_role("button", name="Reset").click()
    campaign.frame()
    assert slider.input_value() == str(len(stops) - 1)


def test_sliders_keep_their_width_beside_long_names(campaign: Opened) -> None:
    width = campaign.page.evaluate("""() => {
        const label = document.querySelector(".slider label");
        label.textContent = "cells_per_direction_and_process_and_level";
        return label.nextElementSibling.getBoundingClientRect().width; }""")
    assert width > 60


def test_search_shows_matches_below_their_callers(campaign: Opened) -> None:
    campaign.page.get_by_role("searchbox").fill("wait")
    campaign.frame()
    assert shown(campaign) == ["main", "step", "MPI_Waitall"]
    assert (
        f"1 of {len(sample.PARTS) + 2} call paths"
        in campaign.page.locator(".filters [role=status]").inner_text()
    )


def test_headings_sort(campaign: Opened) -> None:
    heading = campaign.page.locator("th[data-key=value]")
    heading.get_by_role("button").click()
    campaign.frame()
    values = [row["value"] for row in campaign.rows().values()]
    assert values == sorted(values, reverse=True) and len(values) == len(sample.PARTS) + 2
    assert heading.get_attribute("aria-sort") == "descending"
    heading.get_by_role("button").click()
    campaign.frame()
    assert [row["value"] for row in campaign.rows().values()] == sorted(values)


def test_filters_leave_out_mpi_small_shares_and_other_notes(campaign: Opened) -> None:
    everything = set(shown(campaign))
    campaign.page.get_by_label("Hide MPI").check()
    campaign.frame()
    assert everything - set(shown(campaign)) == {"MPI_Waitall", "MPI_Allreduce"}
    campaign.page.get_by_label("Hide MPI").uncheck()
    campaign.page.get_by_role("combobox", name="Share", exact=True).select_option("0.05")
    campaign.frame()
    assert sample.HOSTILE in everything and sample.HOSTILE not in shown(campaign)
    campaign.page.get_by_role("combobox", name="Share", exact=True).select_option("0")
    campaign.page.get_by_role("combobox", name="Notes", exact=True).select_option("noisy")
    campaign.frame()
    callers = {"main", "step", "CalcTimeConstraints"}
    assert set(shown(campaign)) == callers | {"MPI_Waitall", "MPI_Allreduce"}


def test_a_chosen_call_path_is_shown_against_its_data(campaign: Opened) -> None:
    campaign.page.get_by_role("link", name="MPI_Waitall").first.click()
    campaign.frame()
    assert campaign.page.locator(".formula-line strong").inner_text() == "MPI_Waitall"
    chart = campaign.page.locator("#model .chart").first
    assert "main->step->MPI_Waitall along p" in str(chart.get_attribute("aria-label"))
    details = campaign.page.locator("#model details.data").first
    details.locator("summary").click()
    details.locator("tbody tr").first.wait_for()
    kinds = details.locator("tbody tr td:nth-child(2)").all_inner_texts()
    assert {"model", "run", "validation", "outlier"} <= set(kinds)


def test_exclusive_values_are_added_up_along_the_tree(browser: Guarded, tmp_path: Path) -> None:
    document = sample.campaign()
    for item in document["callpaths"]:
        item["exclusive"] = True
    document["whole"] = []
    (tmp_path / "page.html").write_text(page(document))
    opened = Opened(browser, tmp_path / "page.html")
    rows = opened.rows()
    assert rows[0]["share"] == "100\u202f%"
    last = {key: sample.unpacked(document["callpaths"][key]["value"])[-1] for key in rows}
    called, calling = (sample.named(document, name)["id"] for name in ("MPI_Allreduce", "Constraints"))
    share = 100 * (last[calling] + last[called]) / sum(last.values())
    assert rows[calling]["share"] == (f"{share:.0f}\u202f%" if share > 9.95 else f"{share:.1f}\u202f%")
    opened.page.close()


def test_types_of_functions_are_left_out_of_names(campaign: Opened) -> None:
    assert sample.named(sample.campaign(), sample.TYPES)
    assert campaign.page.get_by_role("link", name="CalcForceForNodes", exact=True).first.is_visible()


def test_names_of_call_paths_are_text_wherever_they_are_shown(campaign: Opened) -> None:
    campaign.scroll()
    campaign.page.get_by_role("searchbox").fill("hacked")
    campaign.frame()
    campaign.page.locator(".tree tbody tr").last.get_by_role("link").click()
    campaign.frame()
    assert sample.HOSTILE.split("->")[-1] in campaign.page.locator(".formula-line").inner_text()
    assert campaign.page.evaluate("window.hacked") is None
    assert campaign.page.locator("main script, main img").count() == 0


def test_marks_say_what_they_are(campaign: Opened) -> None:
    chart = campaign.page.get_by_role("img", name="Over two parameters")
    chart.scroll_into_view_if_needed()
    chart.locator("svg").wait_for()
    chart.hover()
    campaign.page.locator(".tip").wait_for()
    assert "90 % interval" in campaign.page.locator(".tip").inner_text()
    assert not campaign.complaints


def test_files_are_made_from_the_page(campaign: Opened) -> None:
    with campaign.page.expect_download() as download:
        campaign.page.get_by_role("button", name="campaign.yaml").click()
    assert Path(download.value.path()).read_text().startswith("name: lulesh-weak\n")
    with campaign.page.expect_download() as download:
        campaign.page.get_by_role("button", name="heat-map.svg").click()
    drawing = Path(download.value.path()).read_text()
    assert drawing.startswith("<svg") and ">4" in drawing


def test_the_theme_can_be_switched(campaign: Opened) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    before = campaign.page.evaluate(background)
    campaign.page.get_by_role("button", name="Switch to the dark theme").click()
    assert campaign.page.evaluate(background) != before
    campaign.page.get_by_role("button", name="Switch to the light theme").click()
    assert campaign.page.evaluate(background) == before


@pytest.mark.parametrize("name", ["campaign", "comparison"])
def test_narrow_windows_need_no_sideways_scrolling(
    browser: Guarded, files: dict[str, Path], name: str
) -> None:
    opened = Opened(browser, files[name], viewport={"width": 400, "height": 800})
    opened.scroll()
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 400
    opened.page.close()


def test_a_phone_hides_columns_and_no_facts(browser: Guarded, tmp_path: Path) -> None:
    document = sample.campaign()
    reason = (
        "the uncertainty at the evaluation point is below that of single runs, and more runs cost too much"
    )
    document["head"]["facts"] = [{"label": "Stopped by", "value": "converged", "detail": reason, "list": []}]
    (tmp_path / "page.html").write_text(page(document))
    opened = Opened(browser, tmp_path / "page.html", viewport={"width": 400, "height": 800})
    fact = opened.page.locator(".facts .wide")
    assert fact.is_visible() and reason in fact.inner_text()
    assert not opened.page.locator("th[data-key=smape]").is_visible()
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 400
    opened.page.close()


def test_points_that_were_never_chosen_are_on_the_map(campaign: Opened) -> None:
    section = campaign.page.locator("#points")
    assert "faint rings those that were never chosen" in section.locator(".lead").inner_text()
    figure = section.locator("figure").first
    assert "points not chosen" in str(figure.locator(".chart").get_attribute("aria-label"))
    reasons = section.get_by_role("region", name="Reasons why points were chosen first")
    assert "never chosen" not in reasons.inner_text()


def test_the_uncertainty_of_late_rounds_can_be_read_beside_that_of_the_first(
    browser: Guarded, tmp_path: Path
) -> None:
    document = sample.campaign()
    first, *rest = document["rounds"]
    last = {**rest[-1], "uncertainty_percent": 3.0}
    document["rounds"] = [{**first, "uncertainty_percent": 130_000.0}, last]
    (tmp_path / "page.html").write_text(page(document))
    opened = Opened(browser, tmp_path / "page.html", viewport={"width": 1200, "height": 1000})
    opened.scroll()
    chart = opened.page.get_by_role("img", name="Uncertainty against cost")
    assert {"10", "1\u202f000", "100\u202f000"} <= set(chart.locator("svg text").all_text_contents())
    assert not opened.complaints
    opened.page.close()


def test_parts_that_overlap_are_not_shown_as_a_sum(browser: Guarded, tmp_path: Path) -> None:
    document = sample.campaign()
    for overlap, heading, bars in (
        (False, "WHAT IT IS MADE UP OF", 1),
        (True, "PARTS OF IT, WHICH OVERLAP", 0),
    ):
        document["head"]["answer"]["overlap"] = overlap
        (tmp_path / "page.html").write_text(page(document))
        opened = Opened(browser, tmp_path / "page.html")
        assert heading in opened.page.locator(".answer-parts").inner_text().upper()
        assert opened.page.locator(".answer-parts .stack").count() == bars
        assert opened.page.get_by_role("heading", name="What the time is made up of").count() == bars
        opened.page.close()


def test_two_values_of_a_parameter_rank_no_growth(browser: Guarded, tmp_path: Path) -> None:
    for measured, ranked in ((2, ["n"]), (3, ["p", "n"])):
        document = sample.campaign()
        document["parameters"][0]["measured"] = document["parameters"][0]["measured"][:measured]
        (tmp_path / "report.html").write_text(page(document))
        opened = Opened(browser, tmp_path / "report.html", viewport={"width": 1200, "height": 900})
        assert opened.page.locator(".ranking select option").all_inner_texts() == ranked
        opened.page.close()


def test_intervals_of_the_parts_stay_inside_the_page(browser: Guarded, tmp_path: Path) -> None:
    document = sample.campaign()
    document["head"]["answer"]["parts"][-1] |= {"low": 2.89e-5, "high": 0.00495}
    (tmp_path / "page.html").write_text(page(document))
    opened = Opened(browser, tmp_path / "page.html", viewport={"width": 1400, "height": 800})
    assert "2.89×10⁻⁵ – 0.00495" in opened.page.locator(".parts").inner_text()
    found = opened.page.evaluate(
        """() => [...document.querySelectorAll(".parts li")].map((row) => [row.scrollWidth - row.clientWidth,
            row.lastElementChild.getBoundingClientRect().left])"""
    )
    assert {over for over, _ in found} == {0} and len({left for _, left in found}) == 1
    opened.page.close()


def test_failed_attempts_are_counted_without_the_runs_that_were_given_up(campaign: Opened) -> None:
    document = sample.campaign()
    failures, given_up = document["failures"], document["unmeasured"]
    assert len(failures) > len(given_up) > 0
    section = campaign.page.locator("#attempts")
    assert section.get_by_role("heading", name=f"Failures ({len(failures)})").is_visible()
    of_runs = section.get_by_role("heading", name=f"Given up, skipped or discarded ({len(given_up)})")
    assert of_runs.is_visible()
    failed = section.get_by_role("region", name="Failed attempts").locator("tbody tr").first
    cells = failed.locator("th, td").all_inner_texts()
    first = failures[0]
    assert cells[:4] == [first["run"], "1", first["class"], first["reason"]] and cells[5] == first["outcome"]
    assert float(cells[4]) > 0
    assert failed.get_by_role("link").get_attribute("href") == f"./{quote(first['files'])}"


def test_of_many_call_paths_only_those_asked_for_are_built(browser: Guarded, files: dict[str, Path]) -> None:
    opened = Opened(browser, files["large"], viewport={"width": 900, "height": 900})
    opened.page.locator("th[data-key=share]").get_by_role("button").click()
    opened.frame()
    assert len(opened.rows()) == 40
    assert opened.page.locator(".chart svg").count() == 0  # none is in view yet
    opened.page.get_by_role("button", name="Show all").click()
    assert len(opened.rows()) == 1000
    opened.page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["campaign", "comparison"])
def test_people_with_disabilities_can_use_it(
    browser: Guarded, files: dict[str, Path], name: str, scheme: str
) -> None:
    rules = importlib.util.find_spec(AXE)
    need(rules is not None, AXE)
    assert rules is not None and rules.origin is not None
    opened = Opened(browser, files[name], color_scheme=scheme, bypass_csp=True)
    opened.scroll()
    opened.page.locator("details.data summary").first.click()
    opened.page.add_script_tag(path=Path(rules.origin).with_name("axe.min.js"))
    # A figure is one picture to them, with its data in a table; the theme changes nothing but colours.
    options = {"resultTypes": ["violations"], **({"runOnly": ["color-contrast"]} if scheme == "dark" else {})}
    found = opened.settled("axe.run({exclude: ['.chart > *']}, argument)", options)
    serious = [
        (item["id"], [node["html"][:200] for node in item["nodes"]][:3])
        for item in found["violations"]
        if item["impact"] in ("serious", "critical")
    ]
    assert not serious
    opened.page.close()


def test_a_click_on_a_ratio_shows_the_models_of_both(browser: Guarded, files: dict[str, Path]) -> None:
    opened = Opened(browser, files["comparison"], viewport={"width": 1200, "height": 1000})
    opened.scroll()
    both = opened.page.get_by_role("img", name="Both against their data")
    assert "kernel_0 along p" in str(both.get_attribute("aria-label"))
    ratios = opened.page.get_by_role("img", name="Ratio per call path")
    ratios.scroll_into_view_if_needed()
    ratios.locator("svg path[fill='rgb(34, 115, 63)']").click()  # the one that became faster
    opened.frame()
    assert "kernel_7 along p" in str(both.get_attribute("aria-label"))
    figure = opened.page.locator("figure", has=both)
    figure.locator("summary").click()
    figure.locator("tbody tr").first.wait_for()  # filled when it has opened
    cells = figure.locator("tbody tr").last.locator("th, td").all_inner_texts()
    assert cells[1] == "run" and cells[2:5] == ["–"] * 3  # a run of the second one
    opened.page.close()


def test_a_page_without_times_does_not_speak_of_time(browser: Guarded, tmp_path: Path) -> None:
    document = sample.bare()
    for item in document["callpaths"]:
        item |= {"metric": "flops", "unit": ""}
    for name, found in (("bare", sample.bare()), ("rates", document)):
        (tmp_path / f"{name}.html").write_text(page(found))
        opened = Opened(browser, tmp_path / f"{name}.html", viewport={"width": 1200, "height": 1000})
        title = opened.page.locator("#tree-title").inner_text()
        assert title == ("What takes the time" if name == "bare" else "Values by call path")
        opened.page.close()


def test_more_of_a_rate_is_not_called_slower(browser: Guarded, tmp_path: Path) -> None:
    document = sample.comparison()
    rows = document["comparison"]["rows"]
    for row in rows[1::2]:
        row |= {"metric": "flops", "unit": ""}
    (tmp_path / "page.html").write_text(page(document))
    opened = Opened(browser, tmp_path / "page.html", viewport={"width": 1200, "height": 1000})
    opened.scroll()
    text = opened.page.locator("#comparison").inner_text()
    assert "has more, and of a time it is slower" in text
    assert (
        "Of 6 times, 1 became slower and 0 faster; of 6 other values, 0 became larger and 1 smaller" in text
    )
    labels = (
        opened.page.get_by_role("img", name="Ratio per call path").locator("svg text").all_text_contents()
    )
    assert "kernel_0 · time" in labels and "kernel_7 · flops" in labels
    opened.page.close()


def test_costs_are_in_the_unit_of_the_budget(browser: Guarded, tmp_path: Path) -> None:
    document = sample.campaign()
    document["cost_unit"] = "core-seconds"
    (tmp_path / "page.html").write_text(page(document))
    opened = Opened(browser, tmp_path / "page.html", viewport={"width": 1200, "height": 1000})
    opened.scroll()
    failed = opened.page.get_by_role("region", name="Failed attempts").locator("tbody tr").first
    charge = failed.locator("th, td").nth(4).inner_text()
    assert float(charge) == pytest.approx(3600 * document["failures"][0]["charge"], rel=1e-3)
    spent = f"{3600 * document['ledger']['spent'][-1]:,.0f}".replace(",", "\u202f")
    label = opened.page.get_by_role("img", name="Spending").get_attribute("aria-label")
    assert (
        label == f"Spending. {spent}\u202fcore-seconds spent of a budget of 360\u202f000\u202fcore-seconds."
    )
    assert "\u202fcore-seconds (" in opened.page.get_by_text("One such run costs").inner_text()
    opened.page.evaluate("document.querySelectorAll('details').forEach((item) => { item.open = true; })")
    assert "core-hours" not in " ".join(opened.page.locator("th").all_text_contents())
    opened.page.close()


def test_effort_shows_waiting_and_what_priors_changed(campaign: Opened) -> None:
    waiting = campaign.page.get_by_role("img", name="Waiting time")
    assert "Longest for MPI_Waitall: 36.7" in str(waiting.get_attribute("aria-label"))
    table = campaign.page.get_by_role("table", name="Models without and with priors")
    assert "structure as in lulesh-2023" in table.inner_text()


def test_counts_of_a_call_path_are_those_that_it_has(browser: Guarded, tmp_path: Path) -> None:
    """Of a barrier, whose bytes are zero, an empty figure was shown first."""
    document = sample.campaign()
    [counted] = document["effort"]["callpaths"]
    zero = [{**pair, "counts": {"bytes": 0.0, "visits": 7.0}} for pair in counted["pairs"]]
    document["effort"]["callpaths"] = [{**counted, "pairs": zero}, counted]
    (tmp_path / "page.html").write_text(page(document))
    opened = Opened(browser, tmp_path / "page.html", viewport={"width": 1200, "height": 1000})
    opened.scroll()
    figure = opened.page.locator("figure", has=opened.page.get_by_role("img", name="Time against counts"))
    callpaths, counts = (figure.locator("label.choice select").nth(k) for k in range(2))
    assert counts.locator("option").all_text_contents() == ["visits"]
    callpaths.select_option("1")
    assert counts.locator("option").all_text_contents() == ["loops", "bytes"]
    counts.select_option("bytes")
    opened.frame()
    assert "bytes" in figure.locator("svg text").all_text_contents()
    assert not opened.complaints
    opened.page.close()


@pytest.mark.parametrize("endless", ["new Promise(() => {})", "(() => { for (;;); })()"])
def test_a_browser_that_does_not_answer_is_ended(
    browser: Guarded, files: dict[str, Path], endless: str
) -> None:
    chromium = shutil.which("chromium")
    assert chromium is not None
    with started(browser.browser.browser_type, chromium) as own:
        opened = Opened(own, files["bare"])
        with own.at_most(1.0), pytest.raises(Exception, match="closed"):
            opened.page.evaluate(endless)
        assert not own.browser.is_connected()


def test_a_promise_that_never_settles_is_given_up(browser: Guarded, files: dict[str, Path]) -> None:
    opened = Opened(browser, files["bare"])
    with pytest.raises(Exception, match="no answer"):
        opened.settled("new Promise(() => {})", seconds=0.1)
    opened.page.close()

"""Names of functions as compilers and profilers write them, and call paths that mean the same."""

from __future__ import annotations

import pytest

from orchestrator.models.callpaths import bare, callers, names, parts, signature
from orchestrator.models.effort import assign, unmatched
from orchestrator.models.swc import modeler
from orchestrator.models.symbolic import terms_of
from orchestrator.types import Measurement, Measurements, Point

POINTS = [Point.of(p=p, n=n) for p in (2, 4, 8) for n in (10, 20, 30, 40)]


@pytest.mark.parametrize(
    ("written", "short"),
    [
        ("void CommSend(Domain&, Int_t, Real_t& (Domain::**)(Index_t), Index_t)", "CommSend"),
        ("CommSend(Domain&, int, double& (Domain::**)(int), int)", "CommSend"),
        ("Sweep(std::vector<int, std::allocator<int> >, Grid_Data*, bool)", "Sweep"),
        ("(anonymous namespace)::query(double)", "query"),
        ("void foo<int, std::vector<int> >(int) [clone .constprop.0]", "foo"),
        ("foo.isra.0", "foo"),
        ("Kernel::LTimes(Grid_Data *) const", "Kernel::LTimes"),
        ("unsigned long Foo<A<int>, 3>::bar<2>(unsigned long) const", "Foo::bar"),
        ("A::operator->() const", "A::operator->"),
        ("A::operator()(int) const", "A::operator()"),
        ("operator new(unsigned long)", "operator new"),
        ("(initialisers)", "(initialisers)"),
        ("MPI_Bcast", "MPI_Bcast"),
    ],
)
def test_a_bare_name_has_no_types(written: str, short: str) -> None:
    assert bare(written) == short


def test_a_signature_keeps_what_tells_overloads_apart() -> None:
    assert signature("void f( int,  A<B> )") == signature("f(int, A<B>) [clone .cold]") == "f(int,A<B>)"
    assert signature("f(int)") != signature("f(double)")


def test_an_arrow_operator_is_no_separator() -> None:
    assert parts("main->A::operator->() const->f()") == ["main", "A::operator->() const", "f()"]
    assert callers("main->A::operator->()")[1] == "main"


@pytest.mark.parametrize(
    ("timed", "counted"),
    [
        ("main->f(int)->g", "main->f(int)->g"),
        ("program->void f(Index_t)->void g()", "main->f(int)->g()"),  # Score-P's root, types and typedefs
        ("main->f<int>(int)", "main->f<int>(int) [clone .constprop.0]"),
        ("main->Solve->LTimes", "main->Solver(Grid*)->Kernel::LTimes(Grid*)"),  # a program's own timer
    ],
)
def test_different_words_for_one_call_path(timed: str, counted: str) -> None:
    assert names([timed, "(run)"], [counted]).find(counted) == timed


def test_what_could_mean_several_is_none_of_them() -> None:
    overloads = names(["main->f(Index_t)", "main->f(Real_t)"], ["main->f(int)"])
    assert overloads.find("main->f(int)") is None
    exact = names(["main->void f(int)", "main->void f(double)"], ["main->f(int)"])
    assert exact.find("main->f(int)") == "main->void f(int)"


def test_a_function_is_not_taken_for_its_namesake_elsewhere() -> None:
    """Its last name alone finds only what no call path finds: here g of f, whose own time is known."""
    found = names(["main->f->g", "main->h"], ["main->f->g", "main->h->g"])
    assert found.callers("main->h->g") == ["main->h"]


def measured(path: str, metric: str, factor: float, *, twice: float = 0.0) -> Measurement:
    values: dict[Point, tuple[float, ...]] = {p: (factor * p.number("n") ** 2,) for p in POINTS}
    if twice:
        values[POINTS[0]] = (values[POINTS[0]][0], twice * values[POINTS[0]][0])
    return Measurement(path, metric, values)


def test_effort_is_found_whatever_its_names_and_the_rest_is_told() -> None:
    known = Measurements(
        ("p", "n"),
        (
            measured("program->void f(Index_t)", "time", 1e-6),
            measured("main->f(int)", "basic_blocks", 3.0),
            measured("main->f(int)->inlined()", "basic_blocks", 1.0),
            measured("(initialisers)", "basic_blocks", 1.0),
        ),
    )
    found, lost = assign(known, ["program->void f(Index_t)"])
    assert set(found) == {"program->void f(Index_t)"} and lost == ("(initialisers)",)
    assert set(found["program->void f(Index_t)"].counts) == {
        "program->void f(Index_t)",
        "main->f(int)->inlined()",
    }
    assert unmatched(known, ["program->void f(Index_t)"])[1] == pytest.approx(0.2)


def test_polling_takes_no_prior_from_what_it_is_called_by() -> None:
    known = Measurements(
        ("p", "n"),
        (
            measured("main->sweep", "time", 1e-6),
            measured("main->sweep", "basic_blocks", 3.0),
            measured("main->sweep->poll()", "basic_blocks", 50.0, twice=1.8),
        ),
    )
    models = {(m.callpath, m.metric): m for m in modeler.modeler()(known)}
    time = models["main->sweep", "time"]
    assert [term["factors"] for term in terms_of(time) if term["factors"]] == [
        [{"parameter": "n", "exponent": 2.0, "log_exponent": 0.0}]
    ]
    assert any("basic blocks of poll() below differ by up to 44 %" in note for note in time.notes)
    poll = models["main->sweep->poll()", "basic_blocks"]
    assert any("no prior from them" in note for note in poll.notes)

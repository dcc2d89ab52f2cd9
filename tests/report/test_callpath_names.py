"""Short names of call paths: different ones for different call paths, whatever they are called."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.models.callpaths import parts
from orchestrator.report.callpath_names import demangled, named, shortened


def test_a_function_is_called_by_its_name_without_parameters_and_return_type() -> None:
    path = "app->int main(int, char**)->void Solver<double>::sweep(Grid const&, std::vector<int>) const"
    assert shortened([path]) == {path: "app->main->Solver::sweep"}


def test_parameters_and_types_stay_where_functions_of_one_caller_differ_only_in_them() -> None:
    paths = ["main->void f(int)", "main->void f(double)", "main->void g<A>(A)", "main->h(int)->void f(int)"]
    assert list(shortened(paths).values()) == ["main->f(int)", "main->f(double)", "main->g", "main->h->f"]


def test_names_that_differ_in_the_return_type_alone_stay_whole() -> None:
    paths = ["main->int f(int)", "main->long f(int)"]
    assert list(shortened(paths).values()) == paths


def test_remarks_in_brackets_stay_in_names_of_regions() -> None:
    paths = ["main->Find target neurons (w/ RMA)", "main->Synapses (w/ Alltoall)"]
    assert list(shortened(paths).values()) == paths


def test_names_of_annotated_regions_of_several_words_stay_whole() -> None:
    paths = ["main->solve<A, B> x", "main->force compute<LJ>", "main->phase 1: Solver::sweep"]
    assert list(shortened(paths).values()) == paths
    assert list(shortened(["main->solve<A, B>"]).values()) == ["main->solve"]


def test_linker_names_are_shown_as_functions() -> None:
    assert demangled("__pdv_module_MOD_pdv_kernel.constprop.0") == "pdv_module::pdv_kernel"
    path = "main->MAIN__->__pdv_module_MOD_pdv"
    assert shortened([path]) == {path: "main->MAIN__->pdv_module::pdv"}
    assert demangled("_ZN4RAJA6forallIiEEvT_") == "void RAJA::forall<int>(int)"
    assert demangled("_Z4workv.constprop.0") == "work()"
    assert demangled("_Z_no_such_name") == "_Z_no_such_name"
    assert shortened(["main->_ZN6Kripke5solveEi"]) == {"main->_ZN6Kripke5solveEi": "main->Kripke::solve"}


def test_what_is_no_cpp_function_is_left_alone() -> None:
    paths = ["MAIN__->!$omp do @rhs.f90:34", "MAIN__->!$omp do @rhs.f90:40", "main->MPI_Init", "sweep [k=1]"]
    assert list(shortened(paths).values()) == paths


def test_of_long_call_paths_outer_callers_are_left_out_as_far_as_no_other_ends_alike() -> None:
    outer = "main->initialise_everything->read_all_of_the_input"
    paths = [f"{outer}->parse->allocate_buffers->MPI_Bcast", f"{outer}->check->allocate_buffers->MPI_Bcast"]
    assert list(shortened(paths).values()) == [
        "...->parse->allocate_buffers->MPI_Bcast",
        "...->check->allocate_buffers->MPI_Bcast",
    ]


def test_rows_keep_everything_else() -> None:
    rows = [{"callpath": "main->void f(int)", "metric": "time"}]
    assert named(rows) == [{"callpath": "main->f", "metric": "time"}]
    assert rows[0]["callpath"] == "main->void f(int)"


regions = st.sampled_from(
    [
        "main",
        "f",
        "f()",
        "f(int)",
        "void f(int)",
        "f<A>(A)",
        "f<B>(B)",
        "a::f()",
        "operator[](int)",
        "_Z1fi",
        "...",
    ]
)


@given(st.lists(st.lists(regions, min_size=1, max_size=6).map("->".join), unique=True))
def test_no_two_call_paths_get_one_name(paths: list[str]) -> None:
    short = shortened(paths)
    assert list(short) == paths
    assert len(set(short.values())) == len(paths)
    assert all(len(parts(name)) <= len(parts(path)) for path, name in short.items())

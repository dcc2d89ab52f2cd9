"""What llnl-hatchet 2026.2 returns, for tests where it is not installed: frames of functions and values.

It needs a pandas before 3, so it cannot be in every environment. The tests in `test_hatchet.py` that read TAU
profiles pass with it, too.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pandas as pd


class Node:
    """A function, or a statement in one."""

    def __init__(self, name: str, parent: Node | None = None, kind: str = "function") -> None:
        self.frame = {"name": name, "type": kind}
        self.parent = parent

    def path(self) -> tuple[Node, ...]:
        return (*(self.parent.path() if self.parent else ()), self)


class GraphFrame:
    """A table with an index of nodes and ranks."""

    inc_metrics = ("time (inc)",)

    def __init__(self, rows: list[dict[str, object]], index: tuple[str, ...] = ("node", "rank")) -> None:
        self.dataframe = pd.DataFrame(rows).set_index(list(index))

    @staticmethod
    def from_tau(folder: str) -> GraphFrame:
        rows: list[dict[str, object]] = []
        nodes: dict[tuple[str, ...], Node] = {}
        for path in sorted(Path(folder).glob("profile.*")):
            _, rank, _, thread = path.name.split(".")
            for line in path.read_text().split("\n")[2:]:
                if not line.startswith('"') or ("=>" not in line and not line.startswith('".TAU')):
                    continue  # flat values repeat those of call paths
                quoted, _, rest = line[1:].partition('" ')
                names = tuple(name.strip() for name in quoted.split("=>"))
                node = nodes.setdefault(names, Node(names[-1], nodes.get(names[:-1])))
                calls, _, _, inclusive, *_ = rest.split()
                row = {"node": node, "rank": int(rank), "thread": int(thread), "Calls": float(calls)}
                rows.append({**row, "time (inc)": float(inclusive)})
        return GraphFrame(rows, ("node", "rank", "thread"))

    @staticmethod
    def from_hpctoolkit(folder: str) -> GraphFrame:
        """Samples of two ranks in statements, as databases of HPCToolkit 2017 have them."""
        main = Node("main", Node("<program root>"))
        solve = Node("12:solve", main)
        again = Node("14:solve", main)
        statement = Node("sum.c:3", solve, "statement")
        values = ((main, 9e6, 7e6), (solve, 4e6, 2e6), (again, 1e6, 1e6), (statement, 4e6, 2e6))
        rows: list[dict[str, object]] = [
            {"node": node, "rank": rank, "time (inc)": value}
            for node, *by_rank in values
            for rank, value in enumerate(by_rank)
        ]
        return GraphFrame(rows)

    @staticmethod
    def from_hpctoolkit_latest(folder: str, **options: object) -> GraphFrame:
        """Profiles with numbers of their own, and no value of a function that one never called."""
        assert options["exclude_non_function_nodes"] and options["parallel_profiles_mode"]
        main = Node("main", Node("entry", kind="entry"))
        solve = Node("solve", main)
        rows: list[dict[str, object]] = [
            {"node": main, "profile": 1, "time (inc)": 3.0},
            {"node": main, "profile": 7, "time (inc)": 2.0},
            {"node": solve, "profile": 1, "time (inc)": 1.0},
            {"node": solve, "profile": 7, "time (inc)": float("nan")},
        ]
        return GraphFrame(rows, ("node", "profile"))


MODULE = SimpleNamespace(GraphFrame=GraphFrame)


def write_tau(directory: Path, rank: int = 0, thread: int = 0, factor: int = 1) -> Path:
    """Write a profile as TAU does with call paths; ``factor`` multiplies times."""
    group = 'GROUP="TAU_CALLPATH|TAU_USER"'
    functions = [
        f'".TAU application" 1 1 {100 * factor} {1000000 * factor} 0 GROUP="TAU_USER"',
        f'"main  " 1 2 0 {900000 * factor} 0 GROUP="TAU_USER"',
        f'".TAU application => main  " 1 2 0 {900000 * factor} 0 {group}',
        f'"MPI_Send()  " 8 0 0 {300000 * factor} 0 GROUP="MPI"',
        f'".TAU application => main   => MPI_Send()  " 8 0 0 {300000 * factor} 0 {group}',
    ]
    head = "# Name Calls Subrs Excl Incl ProfileCalls # <metadata><attribute><name>Metric Name</name>"
    head += "<value>TIME</value></attribute></metadata>"
    lines = [f"{len(functions)} templated_functions_MULTI_TIME", head, *functions, "0 aggregates", ""]
    path = directory / f"profile.{rank}.0.{thread}"
    path.write_text("\n".join(lines))
    return path

"""Decisions, as pure functions of the state of a campaign (`orchestrator.journal.state`).

`decide` is the place to begin: `decide.next_actions` returns `actions` for the loop, by the `rules` of the
campaign. What it asks for:

- which runs begin: `beginning`, within the `budget`, in shared jobs (`packing`) and on certain nodes
  (`placement`); `estimates` is the table of what runs take, `limits` gives time limits and memory;
- where the program does not run: `failing`, with `regions` found by `region_search`; what may be chosen
  then: `elsewhere`;
- when a campaign ends or pauses: `stop_rules`; what a round improved: `progress`; what is to come: `pace`.

What a round has beside the choices of the strategy: `effort_runs`, `reference` runs, and `variants` of the
executable. `machine` says whether measurements can be trusted.
"""

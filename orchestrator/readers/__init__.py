"""Readers of what one run left, and of files with measurements of many runs.

A *reader* (contract: `base`) gets the directory of one attempt and returns samples; campaigns name it as
``measure.profiler``. Readers of profiles are `scorep` (files: `cubex`), `caliper` (files: `cali`) and
`hatchet` (HPCToolkit, TAU), with `profile_files` in common. `stdout` is what a program prints, `time` how
long it took. `effort` and `mpi_time` read counters and times that our own runtime writes, by `rank_files`.
`select` chooses among the samples of a run.

`load` reads measurements of many runs, of any format, by `reading`, the user's choices: `extrap_text`,
`extrap_json`, `table` with its `columns`, `ramble` and `reframe` (JSON by its `json_parts`), which `entries`
makes measurements. Folders of profiles are `cube_set` and `caliper_set`, by `profile_set` and the recorded
`settings`. Outputs that runs left in files are an `output_set`. `path_shape` is where their paths say the
points. `inverse` turns rates into times.

For ``orchestrator init``, times are looked for in what a program prints: `pattern_candidates`, by
`printed_line`, `printed_table` and `printed_columns`.
"""

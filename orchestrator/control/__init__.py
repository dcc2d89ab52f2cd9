"""What acts: here files are read and written, the clock is asked, and processes are started.

The running campaign:

- `session` opens a campaign directory and runs the `loop`; `refusals` and `waiting` come before that;
- `loop` carries out decisions. `settle` turns what happened into events, `attempts` makes requests and reads
  results, for which `success` says whether a run did its work;
- `runtime` is what the loop asks of a campaign; `assembly` builds it from the campaign file, with the
  executor of `execution`, `estimation` of runs, `shapes`, and `counting` of processes;
- during a campaign: `disk`, `keeping` of snapshots, `notify` and its `hook`, `provenance` (`compilers`), and
  `compiling`.

Before a campaign: `planning` and what it may cost, its `plan_document`, `cautions`, `preflight` and
`slurm_preflight`, `idle` parameters, `preloading` of libraries, `priors` from earlier campaigns. Rehearsals:
`rehearsal`, its `assumption` and `outcome`, and the `expectation` of it.

Commands for a campaign that is there (`existing` reads it): `overview`, `watching` and `serving` to look at
it, `reporting`, `fastest`, `discarding`, `reread`, `pruning`, and the `store` of all campaigns of a user.
`suggest` needs no campaign.
"""

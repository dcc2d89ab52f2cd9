"""What people see of campaigns and models.

Most subjects have a *document*, plain data that ``--json`` prints, and a file that shows it as text. A new
figure is put into the document first; its text only reads the document.

- A campaign: `status` and `status_text`, `log` and `log_text` (a line for an event is of `event_text`), one
  run in `dossier` and `dossier_text`, all in `runs_table`. The live view is `watch_document` and
  `watch_screen`, with the `expected_end` of rounds. `controller` says whether one is running, `advice` what
  to do about a campaign that stopped early, `extrapolation` how far the evaluation point is from what was
  measured. `rehearsal_text` is of simulations.
- Models: `models_document`, which status and ``orchestrator model`` share; speedups in `scaling_document` and
  `scaling_figures`; `figures` for notebooks.
- Measurements: two sets of them in `comparison` and `comparison_text`, with `comparison_facts` and `junit`;
  what depends on what in `explore`, by `explore_samples` and `explore_statistics`, shown by `explore_page`
  and `explore_figures`; `noise_report`; for other tools `export` and `ramble`.
- The HTML report is `page`, a package with its own document. `html_sections` are for notebooks and
  ``orchestrator serve``.
- Shared: `wording` of figures, `metrics` and their units, `callpath_names`, `tables`, `html_parts`.
"""

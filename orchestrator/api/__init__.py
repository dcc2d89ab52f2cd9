"""The public Python functions, which the package offers by name (docs/python.md).

- Models of tables: `fit`, `fitted` models, their `speedup`; `suggest` and `compare`. `frames` and `inputs`
  make measurements of tables and files, `points` and `arguments` check what is asked for.
- Campaigns: `running` with `progress`, a `campaign` that was run; `campaign_paths` finds them by name, and
  `temporary` directories are for those that nobody keeps.
"""

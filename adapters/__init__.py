"""Application adapters: one file per application. They import `orchestrator.types` and nothing else of ours."""

# Other distributions install a top-level ``adapters`` too; the registry looks for this mark.
MEASUREMENT_ORCHESTRATOR = True

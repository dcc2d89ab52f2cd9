"""Application adapters: one file per application, pure functions on top of `orchestrator.types` alone."""

# Other distributions install a top-level ``adapters`` too; the registry looks for this mark.
MEASUREMENT_ORCHESTRATOR = True

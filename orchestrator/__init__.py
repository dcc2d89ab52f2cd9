"""Autonomous measurement orchestrator for HPC performance models."""

__version__ = "0.1.0"

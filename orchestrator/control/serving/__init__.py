"""Campaigns in a browser, live and read-only: what ``orchestrator serve`` serves."""

"""The options of a benchmark."""

from __future__ import annotations

import argparse


def options(text: str | None) -> argparse.ArgumentParser:
    """Return a parser of options, with a description that is shown as it is written."""
    return argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)

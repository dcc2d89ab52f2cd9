"""What is read from an output by the times that were found in it."""

from __future__ import annotations

from orchestrator.campaign.schema import OutputSection, ProgramSection
from orchestrator.launch.generic import application
from orchestrator.readers.pattern_candidates import times
from orchestrator.types import Sample


def read(text: str, other: str | None = None) -> dict[str, float]:
    """What the candidates of one output yield in it, or in that of another run."""
    output = tuple(
        OutputSection(
            callpath=item.callpath,
            pattern=item.pattern,
            scale=item.scale,
            aggregate=item.aggregate,  # type: ignore[arg-type]
            thousands=item.thousands,  # type: ignore[arg-type]
        )
        for item in times(text)
    )
    spec = application(ProgramSection(output=output).described(), {})
    samples: list[Sample] = spec.output({"stdout": other or text, "stderr": ""})
    return {sample.callpath: sample.value for sample in samples}

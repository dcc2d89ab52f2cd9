"""Campaigns that learn from earlier ones: what is taken from them, when, and where it is kept.

It is taken once, before anything is spent, and copied into the campaign directory. So a campaign continues as
it began, whatever becomes of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from orchestrator.campaign import loader
from orchestrator.campaign.definition import Campaign
from orchestrator.campaign.learned import FILE_NAME, Learned, entry, learned
from orchestrator.errors import CampaignError, JournalError
from orchestrator.journal.file import FILE_NAME as JOURNAL
from orchestrator.journal.file import holds_campaign, read
from orchestrator.journal.measurements import measurements
from orchestrator.journal.replay import replay
from orchestrator.journal.state import State
from orchestrator.models.effort import EFFORT
from orchestrator.storage import write_atomically

_KEY = "priors.campaigns"


def informed(campaign: Campaign, directory: Path) -> Campaign:
    """Return a campaign with what it learns from others: its copy, or else what they know now.

    Raises
    ------
    CampaignError
        If another campaign cannot be learned from, or the copy is missing.
    """
    if not campaign.priors.campaigns:
        return campaign
    if holds_campaign(directory):
        return with_copy(campaign, directory)
    return replace(campaign, learned=gather(campaign, directory))


def with_copy(campaign: Campaign, directory: Path) -> Campaign:
    """Return a campaign with what its directory keeps of others; as it is where that is gone."""
    if not campaign.priors.campaigns:
        return campaign
    path = directory / FILE_NAME
    try:
        return replace(campaign, learned=Learned(path.read_text(encoding="utf-8")))
    except FileNotFoundError:  # models can still be looked at; `refuse_other_copy` prevents further runs
        return campaign
    except (OSError, UnicodeDecodeError) as error:
        raise CampaignError(
            f"{path}: cannot be read ({error}). It holds what the campaign took from others when it began; "
            "restore it from a backup"
        ) from None


def save(campaign: Campaign, directory: Path) -> None:
    """Write the copy of what a campaign learned, before the campaign begins."""
    if campaign.learned is not None:
        write_atomically(directory / FILE_NAME, campaign.learned.text, durable=True)


def refuse_other_copy(campaign: Campaign, known: State) -> None:
    """Raise `CampaignError` where the copy is not the one that the campaign began with."""
    begun, digest = known.priors.get("sha256"), campaign.learned and campaign.learned.digest
    if begun not in (None, digest):
        now = f"has the SHA-256 {digest[:12]}" if digest else "is missing"
        raise CampaignError(
            f"{FILE_NAME} is not what the campaign began with: it {now}, not {begun[:12]}, and models would "
            "change on the way. Restore it from a backup. Nothing was changed"
        )


def gather(campaign: Campaign, directory: Path) -> Learned:
    """Return what other campaigns know now.

    Parameters
    ----------
    campaign
        The one that learns; it names the others.
    directory
        Where it will be.

    Raises
    ------
    CampaignError
        If one of the others is this one, holds no campaign or no models, or does not vary all parameters of
        this one.
    """
    entries = []
    for name in campaign.priors.campaigns:
        path = Path(name)
        if path.resolve() == directory.resolve():
            raise CampaignError(f"{_KEY}: {name} is the directory of this campaign; name an earlier one")
        entries.append(_taken(campaign, path))
    names = [item["name"] for item in entries]
    for item in entries:
        if names.count(item["name"]) > 1:  # notes must say which of them
            item["name"] = item["path"]
    return learned(entries)


def _taken(campaign: Campaign, path: Path) -> dict[str, object]:
    from orchestrator.models import of_measurements  # the normal form brings a compiler

    if not path.is_dir() or not holds_campaign(path):
        what = "does not exist" if not path.exists() else "holds no campaign"
        raise CampaignError(f"{_KEY}: {path} {what}; name the directory of an earlier campaign")
    try:
        other = loader.of_directory(path)
        state = replay(read(path / JOURNAL))
    except (CampaignError, JournalError) as error:
        raise CampaignError(f"{_KEY}: {path} cannot be read: {error}") from error
    known = measurements(state, other.parameters)
    _refuse_parameters(campaign, other, path)
    counts, times = known.split(EFFORT)
    models = of_measurements(times, other.name)
    if not models.items:
        raise CampaignError(
            f"{_KEY}: campaign {other.name} in {path} has no models yet ({len(known.points)} points are "
            "measured); let it run first, or leave it out"
        )
    names = _varied(other)
    return entry(other.name, str(path.resolve()), state.id, models, counts, names)


def _varied(campaign: Campaign) -> tuple[str, ...]:
    return tuple(item.name for item in campaign.parameters if not item.categorical and len(item.values) > 1)


def _refuse_parameters(campaign: Campaign, other: Campaign, path: Path) -> None:
    wanted, there = _varied(campaign), _varied(other)
    missing: Sequence[str] = [name for name in wanted if name not in there]
    if missing:
        raise CampaignError(
            f"{_KEY}: campaign {other.name} in {path} varied {', '.join(there) or 'nothing'}, this one "
            f"varies {', '.join(wanted)}: of {', '.join(missing)} the other one knows nothing. Leave it out, "
            "or give parameters the same names"
        )

"""Fetch the plotting library of the report page: `python -m tests.report.page.fetch_library`."""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import subprocess
import tarfile
import tempfile
from pathlib import Path

from orchestrator.report.page import render

FOLDER = Path(render.__file__).parent / "assets" / "library"
RECORD = FOLDER / "library.json"


def digest(data: bytes) -> str:
    """Return the SHA-512 as registries write it."""
    return "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()


def main() -> None:
    record = json.loads(RECORD.read_text())
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", default=record["version"], help="another version is recorded")
    version = parser.parse_args().version
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", f"{record['name']}@{version}"], cwd=folder, check=True)
        (package,) = Path(folder).iterdir()
        found = {**record, "version": version, "package_integrity": digest(package.read_bytes())}
        with tarfile.open(package) as archive:
            contents = {name: _content(archive, name) for name in record["files"]}
    found["files"] = {name: digest(data) for name, data in contents.items()}
    if version == record["version"] and found != record:
        raise SystemExit(f"{record['name']} {version} from the registry is not what {RECORD} records")
    for name, data in contents.items():
        (FOLDER / Path(name).name).write_bytes(data)
    RECORD.write_text(json.dumps(found, indent=2) + "\n")


def _content(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.extractfile(f"package/{name}")
    assert member is not None, name
    return member.read()


if __name__ == "__main__":
    main()

"""What the build of the site adds to the pages: those at the top of the repository, and the campaign keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import orchestrator
from orchestrator.campaign.schema import json_schema

ROOT = Path(__file__).parents[1]
TOP = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "LICENSE": "LICENSE.md",
}
_LINK = re.compile(r"\]\((?P<target>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Let pages that the navigation does not name follow the explanations."""
    named = str(config.nav)
    added = sorted(path.name for path in Path(config.docs_dir).glob("*.md") if path.name not in named)
    for section in config.nav or ():
        if "Explanation" in section:
            section["Explanation"].extend(added)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not below ``docs/``."""
    for source, target in TOP.items():
        files.append(File.generated(config, target, content=(ROOT / source).read_text()))
    files.append(File.generated(config, "reference/keys.md", content=keys_page(json_schema())))
    files.append(File.generated(config, "reference/api.md", content=api_page()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links lead where the pages are in the site; what is in the repository alone becomes text."""
    name = page.file.src_uri

    def moved(match: re.Match[str]) -> str:
        target = match["target"]
        if "://" in target or target.startswith("mailto:"):
            return match[0]
        if name in TOP.values():
            target = target.removeprefix("docs/")
        target = target.removeprefix("../") if target.removeprefix("../") in TOP else target
        target = TOP.get(target, target)
        return f"]({target}{match['anchor'] or ''})"

    return _LINK.sub(moved, markdown)


def api_page() -> str:
    """Return a page with the docstrings of all public functions and classes."""
    lines = ["# Python API", "", "From the docstrings. [Python](../python.md) shows how these are used.", ""]
    for name in orchestrator.__all__:
        if not name.startswith("__"):
            lines.append(f"::: {getattr(orchestrator, name).__module__}.{name}")
    return "\n".join([*lines, ""])


def keys_page(schema: Mapping[str, Any]) -> str:
    """Return a page with every key of campaign files, from their JSON schema."""
    lines = [
        "# Campaign keys",
        "",
        "Made from the schema that files are checked with (`orchestrator schema`). What the keys mean is",
        "said in [campaign file](../campaign-file.md).",
        "",
        "| key | type | default |",
        "|---|---|---|",
        *(f"| `{key}` | {kind} | {default} |" for key, kind, default in _keys(schema, schema, "")),
    ]
    return "\n".join([*lines, ""])


def _keys(node: Mapping[str, Any], schema: Mapping[str, Any], above: str) -> Iterator[tuple[str, str, str]]:
    required = node.get("required", ())
    for name, item in node.get("properties", {}).items():
        key, found = f"{above}{name}", list(_alternatives(item, schema))
        default = "required" if name in required else f"`{_yaml(item.get('default'))}`"
        if any("properties" in kind for kind in found) and not isinstance(item.get("default"), str | bool):
            default = "required" if name in required else "see below"
        yield key, " or ".join(dict.fromkeys(map(_kind, found))), default
        sections = [kind for kind in found if "properties" in kind]
        for kind in found:
            chosen = kind.get("properties", {}).get("name", {}).get("const", "any other")
            for inner_key, inner_kind, inner_default in _keys(kind, schema, f"{key}."):
                of = f"of `{chosen}`: {inner_kind}" if len(sections) > 1 else inner_kind
                yield inner_key, of, inner_default
            inner = kind.get("items", kind.get("additionalProperties"))
            if isinstance(inner, Mapping):
                for each in _alternatives(inner, schema):
                    yield from _keys(each, schema, f"{key}.*.")


def _alternatives(node: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "$ref" in node:
        yield from _alternatives(schema["$defs"][node["$ref"].rpartition("/")[2]], schema)
    elif kinds := node.get("anyOf") or node.get("oneOf") or node.get("allOf"):
        for kind in kinds:
            yield from _alternatives(kind, schema)
    else:
        yield node


def _kind(node: Mapping[str, Any]) -> str:
    if "enum" in node:
        return " or ".join(f"`{_yaml(value)}`" for value in node["enum"])
    if "const" in node:
        return f"`{_yaml(node['const'])}`"
    kind = str(node.get("type", "any"))
    return {"object": "section", "array": "list", "string": "text", "null": "nothing"}.get(kind, kind)


def _yaml(value: object) -> str:
    if value is None or value == "":
        return "none" if value is None else '""'
    return str(value).lower() if isinstance(value, bool) else str(value)

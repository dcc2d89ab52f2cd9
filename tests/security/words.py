"""Words that do harm wherever they are taken for more than text."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

# Pieces of which every word could do harm in some place: shell, batch script, template, placeholder, path.
PIECES = [
    *("$(touch pwned)", "`touch pwned`", "; touch pwned #", "' ; touch pwned ; '", '" ; touch pwned ; "'),
    *(
        "\ntouch pwned\n",
        "\r\ntouch pwned\r\n",
        "&& touch pwned ",
        "| touch pwned ",
        "> pwned ",
        "$IFS",
        "\\",
    ),
    *(
        "'",
        '"',
        "\\'",
        " ",
        "\t",
        "*",
        "?",
        "~",
        "!",
        "#",
        "{a,b}",
        "[x]",
        "-n",
        "--",
        "%s",
        "=",
        "a",
        "é",
        "🚀",
    ),
    *("{{command}}", "{{", "}}", "{n}", "${HOME}", "$0", "\x1b[2J", "\x85", "\u2028", "<<EOF", "EOF"),
]
words = st.lists(st.sampled_from(PIECES), max_size=4).map("".join)
nothing_timed = settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

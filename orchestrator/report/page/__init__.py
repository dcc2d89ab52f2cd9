"""The report: one JSON-ready document, and the page that shows it.

`document` puts together what every other file makes, and `render` puts it into one HTML file with the style
and scripts of `assets`. To change what a section says, change its file; to change how it looks, its script.

- What it is about: `subject`, its `runs`, the `history` of its journal, and the `grid` of points at which
  models are asked (`answers`).
- Sections: `head`, `answer`, `callpaths` with their `growth`, `formulas`, `speedup`, `points`, `course`,
  `noise`, `effort`, `priors`, `validation`, and `downloads`.
- The page of a comparison: `comparison`, with both `sides`.
- Numbers: `encoding` in the document, `numerals` in sentences.
"""

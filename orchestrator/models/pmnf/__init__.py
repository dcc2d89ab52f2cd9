"""The performance model normal form: sums of terms, each a product of powers and logarithms of parameters.

All call paths that were measured at the same points are fitted together, as rows of arrays. A *block* is one
factor of one parameter, such as ``p**0.5 * log2(p)``; its number is a column of a table, one table for each
parameter. A *term* is a block number for each parameter, 0 for none. A *hypothesis* is a constant and terms.
*Located* values are one for each point, with the noise of its repetitions (`orchestrator.models.noise`).

The way of a fit, from file to file:

1. `modeler` and its `options`: groups of call paths, `trends` that ask for falling or higher blocks, and
   remarks; `hypotheses` has exponents and blocks.
2. The three steps of a search: `plain` finds and fits `candidates`, `outliers` get little weight, `misfit`
   tries wider forms and a `correction` where nothing fits. `solution` is what these pass on.
3. Search: `exhaustive` of one or two parameters, by `moments`; of more, `start` and then `beam`, which tries
   blocks by `sweep`. `overheads` and `parents` add hypotheses that these leave out. `kernels` are compiled
   loops.
4. Weights: `fit` finds coefficients and the evidence of every candidate, with the noise of `weighting`,
   what `division` hides, and `truncation` of coefficients that cannot be negative. The prior of forms is
   `candidates.log_prior`; the search ranks them by `candidates.PENALTY` per block.
5. Categories: `categories` share forms (`category` is one of them), `borrowing` is for those with few points.
6. Models: `build` makes the `model` with its `posterior` over `representatives` of all hypotheses; their
   `interplay` is what points leave open of parameters that terms lack.

Beside that way: `exact_sums` of counts without noise (`peeling`, `block_sets`, `unchecked`), `neighbours` for
what other campaigns found, `normal_forms` as curves see them, and `known_form`, which fits only coefficients.
"""

"""Which points are measured next.

A strategy (contract: `base`) sees a `base.View` and returns runs with reasons. All share `candidates`: which
points may be proposed, at what cost. Most begin with a `starting_set`.

- `information` is our own, a package; `active` is for large spaces.
- From the papers: `cpf`, `gpr`, `hybrid` and `bayesian`, by the Gaussian process of `surrogate`.
- To compare with: `full`, `grid`, `random`; `sample` draws points of large spaces, by `drawing`.

`relevance` says which call paths count, with what weight.
"""

"""Restricted cubic splines: regression with readable terms (Lee et al., section 3.2; Harrell 2001).

- `modeler` chooses among the regressions of `family`; `model` adds the formula and tests of terms to what all
  learners have.
- `fitting` is one regression: a `design` of splines (`basis`) and `interactions`, the `response` in
  logarithms or roots, least squares from `moments`, `regional` sampling, and the `significance` of terms.
"""

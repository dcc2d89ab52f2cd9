"""Times explained by counted effort: counts give the form of a model, times its coefficients.

The way of a fit:

1. `modeler` models the counts and makes a prior of each call path's time: `skeleton` puts together `columns`,
   sums of terms whose coefficients are not known. `count_check` says whether models of counts can be trusted.
2. Measured times are located (`times`), without those of `disturbances`; `regression` finds coefficients.
3. `posterior` weighs the prior among the hypotheses of the normal form, by its `likelihood`; `combination` is
   the model that results.

Beside that way: `waiting` is what times have beyond the work that was counted.
"""

"""Gaussian processes in the logarithms: curves alone, formulas alone, and formulas times small curves.

Words of these files: the *sizes* of a process are the standard deviations of its components (slopes, bends,
walks, ...); a *draw* is one set of sizes from their prior; a *member* is one explanation (a formula or none,
and a draw) of those that stand for all; its *weight* is its probability.

The way of a fit, from file to file:

1. `modeler`: call paths that were measured at the same points; `screening` leaves out those that a formula
   alone explains; `sharing`: what others make of formulas.
2. `design`: what these call paths share, by `features` of the points.
3. `prior`: draws of sizes, which `sizes` has as learned from measured data.
4. `evidence`: how probable values are around curves, formulas and both; `scatter`: what repetitions allow.
5. `weighing`: all together. `weighed` weighs formulas and `regimes` (`saturation` is one kind); `kinds`
   weighs curves that multiply each other or add up (`additive`); `members` chooses what stands for all.
6. `explanations`: what remains possible, and what it predicts; `model` makes a model of them.
"""

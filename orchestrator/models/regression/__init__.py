"""What all families of learners share: a model is learned from samples, without a form.

1. `samples`: measurements of a call path as rows of coordinates, with `alignment` of whole numbers. `first`
   are those by which learners are chosen.
2. `learner` is the contract; `trend` and `formula` are learners for every family.
3. `choice` says which learners of a family predict, with what weights: by `cross_validation` on `folds`,
   inside the measured range and beyond it.
4. `modeler` fits what was chosen to all samples and makes the `model`, with intervals from `errors`.
"""

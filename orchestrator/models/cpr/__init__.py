"""Tensor completion: low-rank sums of products of one-dimensional functions (Hutter and Solomonik).

1. `modeler` chooses among the tensors of `family`, most of which are averages (`ensemble`).
2. `completion` is a tensor: its `modes`, further ones along combinations by `growth`, and its factors, found
   by `fitting` with a `penalty` on them. `warm` improves known factors by new runs.
3. Solvers: `als`, and `positive` factors. `gradient` and `coordinates` are others of the paper, to compare.
4. Beyond the measured range: `continuation`; of positive tensors `rank_one` and `splines`.
"""

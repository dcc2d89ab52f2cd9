"""Learners of scikit-learn, for tuning spaces without a formula.

`modeler` is the place to begin, `family` lists the learners that it tries. What they see of a point are
`columns`, scaled by `distances`; what they have learned is `fitted`, trees as a flat `forest`.

- Learners: `linear`, `neighbours`, `trees`, `kernels`, `networks`, and `rprop` of a paper.
- `ends` lets any of them go on beyond the measured range as a straight line.
"""

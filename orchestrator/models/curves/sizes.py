"""Sizes of curves, learned from measured far corners by ``benchmarks/learn_sizes.py --write``.

Decimal logarithms of typical standard deviations: of all families of data sets, and where they are others
without one of them.
"""

ALL = {
    "slope": -0.4,
    "bend": -2.0,
    "smooth_walk": -2.0,
    "walk": -1.0,
    "start": -0.7,
    "product": -2.5,
    "noise": -1.2,
}

WITHOUT: dict[str, dict[str, float]] = {
    "collectives": {},
    "hsmgp": {"noise": -1.5},
    "luleshcali": {},
    "pdf": {"noise": -1.5},
    "rajagpu": {},
    "relearn": {},
    "slateqr": {},
    "snap": {},
}

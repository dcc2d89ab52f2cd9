"""Sizes of curves, learned from measured far corners by ``benchmarks/learn_sizes.py --write``.

Decimal logarithms of typical standard deviations: of all families of data sets, and without each of them.
"""

LEARNED: dict[str, dict[str, float]] = {
    "all": {"slope": -0.4, "bend": -2.0, "smooth_walk": -1.5, "walk": -0.7, "product": -2.0, "noise": -1.5},
    "without collectives": {
        "slope": -0.4,
        "bend": -2.0,
        "smooth_walk": -1.5,
        "walk": -0.7,
        "product": -2.0,
        "noise": -1.5,
    },
    "without hsmgp": {
        "slope": -0.4,
        "bend": -2.0,
        "smooth_walk": -1.5,
        "walk": -0.7,
        "product": -2.0,
        "noise": -1.5,
    },
    "without luleshcali": {
        "slope": -0.4,
        "bend": -2.0,
        "smooth_walk": -1.5,
        "walk": -0.7,
        "product": -2.0,
        "noise": -1.5,
    },
    "without pdf": {
        "slope": -0.4,
        "bend": -2.0,
        "smooth_walk": -1.5,
        "walk": -0.7,
        "product": -2.0,
        "noise": -1.5,
    },
    "without rajagpu": {
        "slope": -0.4,
        "bend": -2.0,
        "smooth_walk": -1.5,
        "walk": -0.7,
        "product": -2.0,
        "noise": -1.5,
    },
    "without relearn": {
        "slope": -0.4,
        "bend": -2.0,
        "smooth_walk": -1.5,
        "walk": -0.7,
        "product": -2.0,
        "noise": -1.5,
    },
    "without slateqr": {
        "slope": -0.4,
        "bend": -2.0,
        "smooth_walk": -1.5,
        "walk": -0.7,
        "product": -2.0,
        "noise": -1.5,
    },
    "without snap": {
        "slope": -0.4,
        "bend": -2.0,
        "smooth_walk": -2.0,
        "walk": -0.7,
        "product": -2.0,
        "noise": -1.5,
    },
}

"""The procedure of Extra-P: one parameter at a time by cross-validation, then sums and products of these."""

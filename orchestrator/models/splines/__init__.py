"""Restricted cubic splines: regression with readable terms (Lee et al., section 3.2; Harrell 2001)."""

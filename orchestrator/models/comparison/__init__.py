"""Two sets of measurements compared, call path by call path: what changed, by how much, and how surely.

Measurements of both at a common point are a pair. The logarithm of the ratio at the pairs is modelled by
itself: what both have in common, such as the form of their models, then cancels.
"""

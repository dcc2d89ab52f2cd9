"""Grey-box speedup: a generalised Amdahl's law, and its overhead as far as it was seen.

Alasandagutti, Bridges and Estrada, Grey-Box Machine Learning Prediction of Parallel Application Scaling.
"""

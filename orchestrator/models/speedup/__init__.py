"""Grey-box speedup: a generalised Amdahl's law, and its overhead as far as it was seen.

Alasandagutti, Bridges and Estrada, Grey-Box Machine Learning Prediction of Parallel Application Scaling.

- `modeler` and `family` are the places to begin.
- `layout` is how the paper sees samples. `amdahl` fits the parallel fraction, `law` predicts by it.
- The `overhead` is learned from five-sample `vectors`, with means of what was measured `nearby`. `oliveira`
  is another model in place of the law.
"""

"""Information per cost, our own strategy: measure what teaches most about P₊ for what it costs.

`strategy` is the place to begin. `stakes` is what runs can still lower at P₊, by the covariances of `gain`
and the growth of `unseen_terms` that measurements cannot exclude. `choosing` rates affordable runs by their
`price` and chooses a round of them; `ending` says why none is proposed, and which one `beyond`
the ranges of the search space would help.
"""

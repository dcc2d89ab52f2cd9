"""Tensor completion: low-rank sums of products of one-dimensional functions (Hutter and Solomonik)."""

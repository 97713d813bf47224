"""Targets over libraries that nobody here wrote: every answer is theirs.

`opendp:FILE` is a threshold count released by OpenDP's Laplace measurement, scaled by local
sensitivity. `diffprivlib:FILE` is diffprivlib's `mean` of a predicate, without bounds.
"""

"""Noise drawn without rounding: integers for Laplace, exact reals cut to a grid for Cauchy."""

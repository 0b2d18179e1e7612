"""How items get their scores: features, kernels, and which labels stand in the core of a star."""

"""The losses that a search in a lattice knows, by name; here, so that a name loads no kernel."""

LOSSES = (
    "loss",
    "precision",
    "discernibility",
    "discernibility-monotonic",
    "average-class-size",
    "entropy",
    "entropy-monotonic",
    "ambiguity",
    "kl-divergence",
)

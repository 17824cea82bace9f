"""The names of the losses of a lattice search; kept apart so that no kernel is loaded for them."""

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
#: Those that count only classes, so that no column adds to them.
OF_CLASSES = ("discernibility", "discernibility-monotonic", "average-class-size")

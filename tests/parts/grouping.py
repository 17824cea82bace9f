"""Short ways to classes and their sums, as tables make them of their columns."""

from __future__ import annotations

import numpy as np

from shoal.table._classes import agreement_of, form_classes, weights_by_class
from shoal.table.columns._encode import encode


def classes_of(columns, rows):
    """Series grouped by equal values."""
    return form_classes((encode(column) for column in columns), rows)


def weight_sums(classes, weights):
    """The sum of the weights in the class of each record."""
    return classes.spread(weights_by_class(classes, weights))


def wildcard_weight_sums(parts, rows, weights):
    """The same for all records that agree, a missing value with every value."""
    classes = form_classes(parts, rows)
    totals = agreement_of(parts, classes).totals(weights_by_class(classes, weights))
    return classes.spread(totals)


def wildcard_sizes(parts, rows):
    """How many records agree with each."""
    return wildcard_weight_sums(parts, rows, np.ones(rows)).astype(np.int64)

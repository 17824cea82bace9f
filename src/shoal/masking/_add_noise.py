"""Laplace noise, scaled by the class of the record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from shoal.kernels.arrays import Flags, Floats
from shoal.masking._base import NumericMasker, StepLog
from shoal.parameters import ColumnNames, Real, Secret
from shoal.randomness import SecretStream
from shoal.table import Numbers, Table, ends_of_members


@dataclass(kw_only=True)
class AddNoise(NumericMasker):
    """Add Laplace noise to floating-point columns, scaled by the diameter of the class.

    The records that are equal on all nominal quasi-identifiers form a class. The scale is
    diameter / ``epsilon``. The diameter is the range of the column within the class, or within
    the whole column if the class has a single value. The noise is drawn on a grid common to the
    column, so that the last bits of a released number reveal nothing about the original one.

    This is *not* differential privacy: the scale comes from the data, and ``epsilon`` only sets
    the size of the noise.

    Parameters
    ----------
    epsilon : float
        Larger values add less noise; 0.5 to 16 are usual.
    columns : list of str, optional
        The columns to mask; by default the quasi-identifiers.
    random_state : int, optional
        For tests only: anyone who learns the seed can remove the noise. By default the noise
        comes from the operating system's entropy.

    References
    ----------
    Carvalho, Moniz, Faria, Antunes (2022), Towards a Data Privacy-Predictive Performance Trade-off
    <https://arxiv.org/abs/2201.05226>, section 3 (noise). Mironov (2012), On significance of the
    least significant bits for differential privacy <https://doi.org/10.1145/2382196.2382264>.

    Examples
    --------
    >>> import polars as pl
    >>> from shoal import Roles, Table
    >>> incomes = pl.DataFrame({"income": [1200.0, 1500.0, 3100.0], "sex": ["f", "f", "m"]})
    >>> noise = AddNoise(epsilon=2.0)
    >>> masked = noise.fit_transform(Table(incomes, Roles(quasi_identifiers=["income", "sex"])))
    >>> noise.touched_, noise.skipped_
    (('income',), {'sex': 'text, not float'})
    """

    epsilon: Annotated[float, Real(above=0)]
    columns: Annotated[list[str] | None, ColumnNames()] = None
    random_state: Annotated[int | None, Secret()] = None

    method = "add_noise"
    summary = "adds Laplace noise to floating-point columns, scaled by the class's diameter"
    reference = "Carvalho et al. 2022; Mironov 2012"
    is_random = True
    kinds = ("float",)

    def _prepare(self, table: Table, log: StepLog) -> tuple[SecretStream, npt.NDArray[Any]]:
        stream = self._stream(table, log)
        nominal = [
            name
            for name in table.roles.quasi_identifiers
            if table.kind(name) in ("text", "boolean")
        ]
        return stream, table.group(nominal).labels

    def _map(
        self, name: str, numbers: Numbers, prepared: tuple[SecretStream, npt.NDArray[Any]]
    ) -> npt.NDArray[Any] | str:
        stream, labels = prepared
        values, present = numbers.values, numbers.present
        with np.errstate(over="ignore"):
            whole = float(np.ptp(values[present]))
        if whole == 0:
            return "all values are equal"
        if not np.isfinite(whole):
            return "its range exceeds the largest floating-point number"
        diameter = _class_ranges(values, present, labels)
        with np.errstate(over="ignore"):  # an infinite scale is refused below
            scales = np.where(diameter > 0, diameter, whole) / self.epsilon
        scales = np.maximum(scales, np.finfo(np.float64).tiny)  # a quotient may underflow to 0
        noisy = values.copy()
        own = stream.derive(self.method, name)
        noisy[present] = own.laplace_on_grid(values[present], scales[present])
        return noisy


def _class_ranges(values: Floats, present: Flags, labels: npt.NDArray[Any]) -> Floats:
    """The range of the present values in the class of each record."""
    ends = ends_of_members(labels[present], values[present], int(labels.max()) + 1)
    lowest, highest = ends.T
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(highest >= lowest, highest - lowest, 0.0)[labels]

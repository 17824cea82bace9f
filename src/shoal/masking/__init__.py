"""Masking methods: one estimator per method, a Table in, a new Table out."""

from shoal.masking._add_noise import AddNoise
from shoal.masking._base import Masker, Progress, Secrets, discover_maskers
from shoal.masking._generalize import Generalize
from shoal.masking._microaggregate import Microaggregate
from shoal.masking._pram import Pram
from shoal.masking._rank_swap import RankSwap
from shoal.masking._recode import Recode
from shoal.masking._redraw import Redraw
from shoal.masking._round import Round
from shoal.masking._sample import Sample
from shoal.masking._suppress import Suppress
from shoal.masking._swap import Swap
from shoal.masking._top_bottom_code import TopBottomCode
from shoal.masking.dates._dates_to_year import DatesToYear
from shoal.masking.dates._derived import in_order_of
from shoal.masking.dates._shift_dates import ShiftDates, refuse_nameless_shifts, warn_of_shifts
from shoal.masking.generalization._serving import TOP, Scale
from shoal.masking.identifiers._key_file import fingerprint_of, read_key_file, write_key_file
from shoal.masking.identifiers._pseudonymize import Pseudonymize
from shoal.masking.identifiers._shapes import hashed_names

__all__ = [
    "TOP",
    "AddNoise",
    "DatesToYear",
    "Generalize",
    "Masker",
    "Microaggregate",
    "Pram",
    "Progress",
    "Pseudonymize",
    "RankSwap",
    "Recode",
    "Redraw",
    "Round",
    "Sample",
    "Scale",
    "Secrets",
    "ShiftDates",
    "Suppress",
    "Swap",
    "TopBottomCode",
    "discover_maskers",
    "fingerprint_of",
    "hashed_names",
    "in_order_of",
    "read_key_file",
    "refuse_nameless_shifts",
    "warn_of_shifts",
    "write_key_file",
]

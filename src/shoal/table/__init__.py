"""Tables about people: the only folder that knows data frames."""

from shoal.table._classes import (
    Classes,
    counted_values,
    exact_total,
    form_classes,
    owned_pairs,
    weights_by_class,
)
from shoal.table._learning import (
    features_of,
    fingerprint,
    frame_of_array,
    frame_of_columns,
    renamed,
    whole_as_floats,
    with_target,
)
from shoal.table._pair import (
    Listed,
    Outcomes,
    Pair,
    empty_cells,
    empty_codes,
    empty_count,
    released_text,
    shared_codes,
    shared_numbers,
    shared_persons,
    stacked_codes,
    stacked_numbers,
    stacked_table,
    to_one_scale,
)
from shoal.table._provenance import (
    OTHER,
    Course,
    Exchange,
    Sampling,
    shared_crowds,
    signed_codes,
    swapped_blocks,
    swapped_crowds,
)
from shoal.table._released_column import (
    ReleasedColumn,
    ends_of_members,
    read_labels_of,
    released_column,
    usual_partners,
)
from shoal.table._released_file import ReleasedFile, read_records, records_as_parquet
from shoal.table._roles import Roles, as_roles, role_word
from shoal.table._table import Missing, Table, check_reading, check_table
from shoal.table.columns._column import Column, Numbers, in_one_code
from shoal.table.columns._domain import (
    ROOT,
    Domain,
    Meaning,
    interval_meanings,
    interval_text,
    value_meanings,
)
from shoal.table.columns._encode import Codes
from shoal.table.columns._frames import DAYS_OF_CALENDAR, NUMBERS, QUANTITIES, Kind
from shoal.table.columns._quantities import quantities, scale_name
from shoal.table.hierarchy._codes import HierarchyCodes
from shoal.table.hierarchy._hierarchy import Hierarchy
from shoal.table.hierarchy._propose import codes_in
from shoal.table.hierarchy._round_ends import RoundEnds
from shoal.table.hierarchy._rule import Unseen
from shoal.table.storage._columnar import column_labels
from shoal.table.storage._formats import DELIMITER_OF, DELIMITERS, ENCODINGS, FORMATS, Dialect
from shoal.table.storage._formulas import Formulas
from shoal.table.storage._read import read
from shoal.table.storage._reading import Manner, ReadOptions
from shoal.table.storage._size import available_memory, check_file_size, return_freed_memory
from shoal.table.storage._text import source_digest
from shoal.table.storage._types import recorded_kind
from shoal.table.storage.inference._missing import MixedColumn, mixed_columns, other_texts
from shoal.table.storage.labelled._coding import Coding
from shoal.table.storage.labelled._dictionary import LABELLED, Dictionary
from shoal.table.storage.metadata._description import DescribedColumn, Description
from shoal.table.storage.metadata._files import check_standards
from shoal.table.storage.metadata._files import name_of as metadata_name
from shoal.table.storage.metadata._files import write as metadata_text
from shoal.table.suggestion._column_names import NameHints, hints_of, words_of
from shoal.table.suggestion._patterns import Evidence, looks_like_identifier, written_as_date
from shoal.table.suggestion._suggest import RoleSuggestion, identifying_columns, suggest_roles

__all__ = [
    "DAYS_OF_CALENDAR",
    "DELIMITERS",
    "DELIMITER_OF",
    "ENCODINGS",
    "FORMATS",
    "LABELLED",
    "NUMBERS",
    "OTHER",
    "QUANTITIES",
    "ROOT",
    "Classes",
    "Codes",
    "Coding",
    "Column",
    "Course",
    "DescribedColumn",
    "Description",
    "Dialect",
    "Dictionary",
    "Domain",
    "Evidence",
    "Exchange",
    "Formulas",
    "Hierarchy",
    "HierarchyCodes",
    "Kind",
    "Listed",
    "Manner",
    "Meaning",
    "Missing",
    "MixedColumn",
    "NameHints",
    "Numbers",
    "Outcomes",
    "Pair",
    "ReadOptions",
    "ReleasedColumn",
    "ReleasedFile",
    "RoleSuggestion",
    "Roles",
    "RoundEnds",
    "Sampling",
    "Table",
    "Unseen",
    "as_roles",
    "available_memory",
    "check_file_size",
    "check_reading",
    "check_standards",
    "check_table",
    "codes_in",
    "column_labels",
    "counted_values",
    "empty_cells",
    "empty_codes",
    "empty_count",
    "ends_of_members",
    "exact_total",
    "features_of",
    "fingerprint",
    "form_classes",
    "frame_of_array",
    "frame_of_columns",
    "hints_of",
    "identifying_columns",
    "in_one_code",
    "interval_meanings",
    "interval_text",
    "looks_like_identifier",
    "metadata_name",
    "metadata_text",
    "mixed_columns",
    "other_texts",
    "owned_pairs",
    "quantities",
    "read",
    "read_labels_of",
    "read_records",
    "recorded_kind",
    "records_as_parquet",
    "released_column",
    "released_text",
    "renamed",
    "return_freed_memory",
    "role_word",
    "scale_name",
    "shared_codes",
    "shared_crowds",
    "shared_numbers",
    "shared_persons",
    "signed_codes",
    "source_digest",
    "stacked_codes",
    "stacked_numbers",
    "stacked_table",
    "suggest_roles",
    "swapped_blocks",
    "swapped_crowds",
    "to_one_scale",
    "usual_partners",
    "value_meanings",
    "weights_by_class",
    "whole_as_floats",
    "with_target",
    "words_of",
    "written_as_date",
]

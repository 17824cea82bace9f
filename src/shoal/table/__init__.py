"""Tables about people: the only folder that knows data frames."""

from shoal.table._classes import Classes
from shoal.table._encode import Codes
from shoal.table._exchange import Exchange
from shoal.table._frames import Kind
from shoal.table._grouped import Missing
from shoal.table._read_table import read
from shoal.table._released import read_records, read_released, records_as_parquet
from shoal.table._roles import Roles
from shoal.table._stacked import stacked_codes
from shoal.table._table import Numbers, Table
from shoal.table.storage._formats import FORMATS
from shoal.table.suggestion._suggest import RoleSuggestion, suggest_roles

__all__ = [
    "FORMATS",
    "Classes",
    "Codes",
    "Exchange",
    "Kind",
    "Missing",
    "Numbers",
    "RoleSuggestion",
    "Roles",
    "Table",
    "read",
    "read_records",
    "read_released",
    "records_as_parquet",
    "stacked_codes",
    "suggest_roles",
]

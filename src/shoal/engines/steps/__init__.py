"""How each step of a plan runs on an engine: by counts, by value, or in chunks.

By counts, the step masks the combinations of its columns, and each row gets the masked values of
its combination; the result is that of memory. By value, the step learns from counts, and each row
is mapped by itself. In chunks, the step runs as in memory on about a hundred thousand similar rows
at a time, and its guarantee holds in each chunk.
"""

from shoal.engines.steps._course import Course
from shoal.engines.steps._identities import name_identifiers
from shoal.engines.steps._run import check_steps, run_step

__all__ = ["Course", "check_steps", "name_identifiers", "run_step"]

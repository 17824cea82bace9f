"""How each step of a plan runs on an engine: by counts, by value, or in chunks.

By counts, the step works on the combinations of the columns it looks at, and each row then gets
what became of its combination: that is what memory finds. By value, what the step learns is
learned from counts, and each row is mapped by itself. In chunks, the step runs as in memory on
about a hundred thousand similar rows at a time, and what it promises holds in each chunk.
"""

from shoal.engines.steps._course import Course
from shoal.engines.steps._identities import name_identifiers
from shoal.engines.steps._run import check_steps, run_step

__all__ = ["Course", "check_steps", "name_identifiers", "run_step"]

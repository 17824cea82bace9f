"""The eight screens, in the order from a file to a release."""

from shoal.app.studio.screens import (
    compare,
    data,
    hierarchies,
    plan,
    release,
    risk,
    roles,
    search,
)

ROOMS = tuple(
    screen.ROOM for screen in (data, roles, risk, hierarchies, plan, search, compare, release)
)

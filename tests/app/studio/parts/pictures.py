"""The pictures of the tutorial, from the real studio on the demo's table; in ``tests/``::

python -m app.studio.parts.pictures
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from shoal.app.demo import PATIENTS

from .browser import Person, chromium
from .server import Server
from .walk import walk

PLACE = Path(__file__).parents[4] / "docs" / "images" / "studio"


def main() -> None:
    """Walk through the studio and take a picture of each screen."""
    folder = Path(tempfile.gettempdir()) / "survey"  # it is to be read in a picture
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with chromium() as browser:
        server = Server(Path(shutil.copy(PATIENTS, folder / PATIENTS.name)))
        try:
            person = Person.of(browser, server, viewport={"width": 1180, "height": 960}).enter()

            def see(room: str) -> None:
                if room == "search":
                    person.page.evaluate("document.getElementById('space-head').scrollIntoView()")
                person.page.wait_for_timeout(300)
                person.page.screenshot(path=PLACE / f"{room}.png")

            walk(person, see)
        finally:
            server.close()
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()

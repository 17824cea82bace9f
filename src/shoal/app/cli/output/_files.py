"""Files of a command that appear complete or not at all, and never over something else."""

from __future__ import annotations

from pathlib import Path

from shoal.errors import InputError


def check_new(path: Path, *, force: bool) -> None:
    """Refuse to write over a file without ``--force``, and over a folder always."""
    if path.is_dir():
        raise InputError(f"'{path}' is a folder; give the name of a file.")
    if path.exists() and not force:
        raise InputError(
            f"There is already a file '{path}'; give another name, or --force to replace it."
        )
    _check_folder(path)


def check_page(path: Path | None) -> None:
    """Refuse to write a page over anything but a page."""
    if path is None:
        return
    if path.is_dir() or (path.exists() and path.suffix.lower() not in (".html", ".htm")):
        raise InputError(f"'{path}' is there already and no page; give a name that ends in .html.")
    _check_folder(path)


def _check_folder(path: Path) -> None:
    folder = path.absolute().parent
    if not folder.is_dir():
        raise InputError(f"There is no folder '{folder}' to write into; make it first.")


def write_whole(path: Path, text: str, *, private: bool = False) -> None:
    """Write a text file in one step: whoever looks finds all of it or none.

    Only its owner may read a private one.
    """
    from shoal.workflow._folder import complete_files

    with complete_files(path.parent, private=private) as aside:
        (aside / path.name).write_text(text, encoding="utf-8", newline="")

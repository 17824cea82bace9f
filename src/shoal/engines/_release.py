"""Writes a release in parts: complete, or not at all."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.engines._engine import in_one_sentence
from shoal.engines._parts import Sizes, finish_private
from shoal.errors import ReleaseError
from shoal.masking import Progress
from shoal.table import check_standards
from shoal.workflow.release._folder import check_targets, complete_or_absent
from shoal.workflow.release._release import write_audit, write_facts, write_pages
from shoal.workflow.release._release_files import digest_of

if TYPE_CHECKING:
    from shoal.engines._protect import LargeRelease


def save_in_parts(
    release: LargeRelease,
    out: str | os.PathLike[str],
    *,
    format: str = "parquet",
    force: bool = False,
    source: Any = None,
    private_out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    **_: Any,
) -> Path:
    """Write the release folder, verify it from its files, and put it in place in one step."""
    from shoal.engines._verify import verify_in_parts

    if format != "parquet":
        raise ReleaseError(
            f"A release in parts is written as Parquet, not as {format}. Leave the format out."
        )
    check_standards(release.plan.release.metadata, format)
    target, private = check_targets(out, private_out, force=force)
    notify = progress or (lambda label, share: None)
    with in_one_sentence(), complete_or_absent(target, replace=force, private=private) as folder:
        notify("Writing the private half", 0.0)
        data, records = folder / "public" / "data", folder / "private" / "records"
        for place, mode in ((data, 0o755), (records, 0o700)):
            place.parent.mkdir(mode=mode)
            place.mkdir(mode=mode)
        _write_records(release, records)
        for file in records.iterdir():
            file.chmod(0o600)
        for file in release.masked.files:
            shutil.move(file, data / file.name)
        notify("Writing the report", 0.4)
        parts = described_parts(sorted(data.iterdir()))
        written = {"file": "data", "format": "parquet", "sha256": digest_of_parts(parts)}
        write_facts(release, folder / "public", {**written, "parts": parts, "formulas": None})
        write_audit(
            release,
            folder / "private",
            {
                "source": described_source(source),
                "release_sha256": digest_of(folder / "public" / "release.json"),
                "parts": described_parts(sorted(records.iterdir())),
                **write_pages(release, folder / "private"),
            },
        )
        notify("Verifying the files", 0.6)
        verify_in_parts(folder, engine=release.masked.engine).raise_if_failed()
    release.close()
    release.masked.moved_to(target / "public" / "data")
    return target


def _write_records(release: LargeRelease, records: Path) -> None:
    masked = release.masked
    tally = masked.tally
    quasi = [name for name in tally.roles.quasi_identifiers if name in masked.columns]
    if not quasi:  # only the sizes of classes were counted, so the classes of rows are unknown
        for file in sorted((release.workshop / "parts" / "private").iterdir()):
            shutil.move(file, records / file.name)
        return
    sizes = Sizes(tally)
    for file in masked.files:
        private = release.workshop / "parts" / "private" / file.name
        finish_private(file, private, records / file.name, sizes, quasi)
        private.unlink()


def described_parts(files: Sequence[Path]) -> list[dict[str, Any]]:
    """Each part with its rows and its checksum."""
    import pyarrow.parquet as pq

    return [
        {"file": f.name, "rows": pq.read_metadata(f).num_rows, "sha256": digest_of(f)}
        for f in files
    ]


def digest_of_parts(parts: Sequence[Any]) -> str:
    """One checksum for all parts: that of their names and checksums in order."""
    lines = "".join(f"{part['sha256']}  {part['file']}\n" for part in parts)
    return hashlib.sha256(lines.encode("utf-8")).hexdigest()


def described_source(source: Any) -> list[dict[str, Any]]:
    """The files of the source by name and size; checksums would need another pass over them."""
    if not isinstance(source, (str, os.PathLike)) or not Path(source).exists():
        return []
    path = Path(source)
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [{"name": f.name, "bytes": f.stat().st_size} for f in files if f.is_file()]

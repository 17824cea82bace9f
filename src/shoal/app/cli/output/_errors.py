"""How failures look: one sentence on stderr, an exit code, and no traceback."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from shoal.app.cli._options import IN_PYTHON, Reading
from shoal.app.cli.output.ui import console, count, listed, note, print_json, printable, tell
from shoal.errors import (
    NothingLeftWarning,
    OptionError,
    ReadError,
    RequirementNotMet,
    ShoalError,
    ShoalWarning,
)

WRONG: Final = 2
STOPPED: Final = 130
BROKEN_PIPE: Final = 141
_SWALLOWED: Final = 1.0  # seconds after which work that still runs is interrupted again

#: The reading options on the command line, by their names in Python.
_OPTIONS: Final = {
    IN_PYTHON.get(spec.name, spec.name): f"--{spec.name.replace('_', '-')}"
    for spec in fields(Reading)
    if spec.name not in ("missing_reasons", "metadata")
}
_PYTHON_OPTION: Final = re.compile(
    rf"\b(?P<named>{'|'.join(_OPTIONS)})=(?:'(?P<value>[^']*)'|True\b)?"
    rf"|'(?P<quoted>{'|'.join(_OPTIONS)})'"
    r"|'[^']*'"
)


class Stopping:
    """Ends the program cleanly on a signal: SIGTERM and SIGHUP work like Ctrl-C.

    A repeated signal, as sent by ``timeout`` or a closing terminal, does not disturb the cleanup.
    A signal that a library swallowed is raised again.
    """

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._heard: list[signal.Signals] = []
        self._is_reported = False

    def listen(self) -> None:
        """Start; a signal that the caller told the program to ignore (nohup) stays ignored."""
        if threading.current_thread() is not threading.main_thread():
            return
        for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM"):
            number = getattr(signal, name, None)  # Windows has two of them
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._stop)
                self._heard.append(number)

    def rest(self) -> None:
        """Stop listening: nothing is left to clean up, and the system may end the program."""
        self._remind(0.0)
        for number in self._heard:
            signal.signal(number, signal.SIG_DFL)

    def _stop(self, number: int, frame: object) -> None:
        if self.received is None:
            self.received = signal.Signals(number)
        if not self._is_reported and not isinstance(sys.exc_info()[1], KeyboardInterrupt):
            self._remind(_SWALLOWED)
            raise KeyboardInterrupt

    def _remind(self, seconds: float) -> None:
        if getattr(signal, "SIGALRM", None) in self._heard:
            signal.setitimer(signal.ITIMER_REAL, seconds)

    def code(self) -> int:
        """Report that the program was stopped; the exit code is 128 plus the signal's number."""
        self._is_reported = True
        by = self.received
        named = "" if by in (None, signal.SIGINT) else f" by {by.name}"
        try:
            tell(f"shoal: stopped{named}; nothing is left half written.")
            sys.stdout.flush()
        except OSError:  # the terminal is gone
            _abandon(sys.stdout, sys.stderr)
        return STOPPED if by is None else 128 + by


STOPPING: Final = Stopping()


@contextmanager
def resumable() -> Iterator[None]:
    """Report that nothing is lost when long work is stopped that saves results as it goes."""
    try:
        yield
    except KeyboardInterrupt:
        tell("shoal: finished work is kept; run the same command again to resume.")
        raise


class _PlainHelp:
    """Help that shows what to type, without types, and ends with examples as written."""

    def __init__(self, *args: Any, epilog: str | None = None, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.examples = epilog

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters without the types of flags and arguments, which do not help a reader."""
        params = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
            elif param.param_type_name == "argument":
                param.display_type_rich = lambda ctx: None  # what follows the name
        return params

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What follows the name of the command, such as ``DATA`` instead of typer's ``{DATA}``."""
        pieces = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [piece.strip("{}") for piece in pieces]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Typer's help, followed by the examples."""
        super().format_help(ctx, formatter)  # type: ignore[misc]
        if self.examples:
            out = console()
            out.print(" Examples", style="bold")
            out.print()
            for line in self.examples.strip("\n").splitlines():
                style = "dim" if line.startswith("#") else None
                out.print(f"   {line}", style=style, soft_wrap=True)
            out.print()


class Command(_PlainHelp, TyperCommand):
    """A command."""


class Group(_PlainHelp, TyperGroup):
    """The commands, with every failure turned into one sentence and an exit code."""

    def main(self, *args: Any, **settings: Any) -> NoReturn:
        """Run, and exit with a code."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # a terminal that lacks a sign shows a '?'
        try:
            code = super().main(*args, **{**settings, "standalone_mode": False})
        except (Exception, KeyboardInterrupt) as cause:
            code = failure(cause, debug=False)
        if code == STOPPED:  # reported here, since typer may have caught the signal first
            code = STOPPING.code()
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; return the exit code of a failure."""
        debug = bool(ctx.params.get("debug"))
        try:
            with warnings_as_lines(debug=debug):
                return super().invoke(ctx)
        except (SystemExit, GeneratorExit):
            raise
        except BaseException as cause:  # a panic of a library is not an Exception
            return failure(cause, debug=debug, as_json=bool(ctx.meta.get("json")))


def failure(cause: BaseException, *, debug: bool, as_json: bool = False) -> int:
    """Report on stderr what went wrong, for programs also on stdout, and return the exit code."""
    if isinstance(cause, typer.Exit):
        return int(cause.exit_code)
    if type(cause).__name__ == "NoArgsIsHelpError":  # the help has been shown
        return WRONG
    if isinstance(cause, (KeyboardInterrupt, typer.Abort)) or STOPPING.received:
        return STOPPED  # whatever else went wrong during the exit
    if isinstance(cause, BrokenPipeError):
        _abandon(sys.stdout)
        return BROKEN_PIPE
    if debug:
        traceback.print_exception(cause, file=sys.stderr)
    message, code = _worded(cause)
    facts = cause.facts if isinstance(cause, RequirementNotMet) else {}
    for number, step in enumerate(facts.get("steps", ()), 1):
        tell(f"shoal: step {number}: {_done(step)}", style="dim")
    tell(f"shoal: {printable(message)}")
    if as_json:
        print_json({"error": message, "exit_code": code, **facts})
    return code


def _done(step: Mapping[str, Any]) -> str:
    """What a step did before a requirement failed, in one line."""
    changed = f"changed {listed(step['columns'])}" if step["columns"] else "changed nothing"
    lost = f", removed {count(step['records_removed'], 'record')}"
    return f"{step['method']} {changed}" + (lost if step["records_removed"] else "")


def _worded(cause: BaseException) -> tuple[str, int]:
    if isinstance(cause, ShoalError):
        return in_options(cause), cause.exit_code
    if hasattr(cause, "format_message"):  # what typer finds wrong with the call
        return _usage(cause), WRONG
    if isinstance(cause, MemoryError):
        return "There is not enough memory for this table; use fewer rows or columns.", WRONG
    if isinstance(cause, OSError) and cause.strerror:
        where = f" ('{cause.filename}')" if cause.filename else ""
        return f"The operating system reported an error: {cause.strerror}{where}.", WRONG
    return (
        f"An unexpected error occurred ({type(cause).__name__}{_place(cause)}). No file is left "
        "half written. Please report this line. SHOAL_DEBUG=1 shows the details, which may "
        "contain values from the data.",
        WRONG,
    )


def in_options(cause: ShoalError) -> str:
    """The message, with the options of :func:`shoal.read` under their command-line names."""
    if not isinstance(cause, ReadError):
        return str(cause)

    def worded(found: re.Match[str]) -> str:
        if found["named"]:
            value = found["value"] or ""
            value = f"'{value}'" if " " in value else value
            return f"{_OPTIONS[found['named']]} {value}".rstrip()
        if found["quoted"] and isinstance(cause, OptionError):  # else it may name a column
            return _OPTIONS[found["quoted"]]
        return found[0]

    return _PYTHON_OPTION.sub(worded, str(cause))


def _usage(cause: Any) -> str:
    """One sentence for a wrong call, with the command that shows more help."""
    ctx = getattr(cause, "ctx", None)
    path = "shoal" if ctx is None else ctx.command_path
    said = " ".join(str(cause.format_message()).split()).replace("Value error, ", "").rstrip(".")
    return f"{said} See '{path} --help'." if said.endswith("?") else f"{said}; see '{path} --help'."


def _place(cause: BaseException) -> str:
    """Where it happened: a file and line of Shoal, never a value."""
    root = Path(__file__).parents[4]
    frames = traceback.extract_tb(cause.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(root / "shoal")]
    if not own:
        return ""
    return f" in {Path(own[-1].filename).relative_to(root).as_posix()}, line {own[-1].lineno}"


def _abandon(*streams: Any) -> None:
    """The reader of the output is gone: do not fail again when Python flushes at exit."""
    for stream in streams:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class Warned(list[str]):
    """Shoal's warnings so far."""

    refuses = False

    def refuse(self) -> None:
        """Raise RequirementNotMet if there was a warning, and from now on at the first one."""
        self.refuses = True
        if self:
            raise RequirementNotMet(
                f"--strict does not accept {count(len(self), 'warning')}. Nothing was written: "
                + " ".join(self),
                {"warnings": list(self)},
            )


@contextmanager
def kept_warnings(*, strict: bool = False) -> Iterator[Warned]:
    """Collect Shoal's warnings in a list; if strict, do not show them as well.

    A strict caller must call ``refuse`` before anything is written.
    """
    warned = Warned()
    shown = warnings.showwarning

    def keep(message: Warning | str, category: type[Warning], *more: Any, **named: Any) -> None:
        own = issubclass(category, ShoalWarning)
        if own and str(message) not in warned:
            warned.append(str(message))
        if warned.refuses:
            warned.refuse()
        if not (own and strict):
            shown(message, category, *more, **named)

    warnings.showwarning = keep
    try:
        yield warned
    finally:
        warnings.showwarning = shown


@contextmanager
def warnings_as_lines(*, debug: bool) -> Iterator[None]:
    """Show each of Shoal's warnings as one line; show those of libraries on demand.

    The warning that nothing is left waits for the end: a failure for that reason reports it itself.
    """
    warned: set[str] = set()
    waiting: list[str] = []

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        *_: object,
        **__: object,
    ) -> None:
        text = str(message)
        if text in warned:
            return
        warned.add(text)
        if issubclass(category, NothingLeftWarning):
            waiting.append(text)
        elif issubclass(category, ShoalWarning):
            note(f"shoal: warning: {printable(text)}", style="yellow")
        elif debug:
            print(f"{filename}:{lineno}: {category.__name__}: {text}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", ShoalWarning)
        warnings.showwarning = show
        reason = ""
        try:
            yield
        except BaseException as cause:
            reason = str(cause)
            raise
        finally:
            for text in waiting:
                if text not in reason:
                    note(f"shoal: warning: {printable(text)}", style="yellow")

"""The group `kafeat`, which imports a command when it is called, and turns errors and signals into exit codes.

SIGINT and SIGTERM become exceptions, so that handlers remove half-written files.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from types import FrameType
from typing import NoReturn

import click

from kafeat._version import __version__
from kafeat.cli import log
from kafeat.cli.command import Context, color_option, completed, name_variable, warn_of_unknown_variables
from kafeat.errors import KafeatError, PartsError, may_pass, no_room
from kafeat.io.storage.temporary_files import remove_ours, uploads_to_call_off


class Terminated(BaseException):
    """An exception for SIGTERM."""

    exit_code = 143


class Interrupted(BaseException):
    """An exception for SIGINT. It is not a `KeyboardInterrupt`, because click writes an empty line for those."""

    exit_code = 130


NAMES = {int(signal.SIGINT): "interrupted", int(signal.SIGTERM): "terminated"}
_received: int | None = None
# The process ends `_GRACE` seconds after a signal. It waits up to `_UPLOAD` seconds more until a partial upload is
# removed from its bucket, and `_LAST_LINE` seconds for the last line, because a pipe may have no reader.
_GRACE, _UPLOAD, _LAST_LINE = 3.5, 30, 0.5
_SHOW_CURSOR = "\x1b[?25h"  # for the terminal, because progress bars hide the cursor


def listen() -> None:
    """Make signals raise `Interrupted` or `Terminated` in the main thread."""
    for number in NAMES:
        signal.signal(number, _raise)


def watch_signals() -> None:
    """End the process some seconds after a signal, even if the main thread is still in a long call of a library.

    Python runs signal handlers only between two bytecodes, so a thread reads the signal from `signal.set_wakeup_fd`.
    """
    theirs, ours = os.pipe()
    os.set_blocking(ours, False)
    signal.set_wakeup_fd(ours, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(theirs,), name="kafeat-signals", daemon=True).start()


def _watch(pipe: int) -> None:
    number = 0
    while number not in NAMES:
        number = os.read(pipe, 1)[0]
    time.sleep(_GRACE)
    for _ in range(_UPLOAD):
        if uploads_to_call_off:
            time.sleep(1.0)
    code = 128 + number
    threading.Timer(_LAST_LINE, os._exit, [code]).start()
    remove_ours()
    if log.live():
        sys.stderr.write(_SHOW_CURSOR)
    log.error(NAMES[number], code, retry=True)
    os._exit(code)


def check() -> None:
    """Raise the exception of an earlier signal again, because Python drops exceptions inside destructors."""
    if _received is not None:
        _raise(_received, None)


def forget() -> int:
    """Let the command go on for some seconds after a signal that it has handled. Return the number of the signal."""
    global _received
    number, _received = _received, None
    return number or signal.SIGINT


def _raise(number: int, _: FrameType | None) -> NoReturn:
    global _received
    _received = number
    raise Interrupted if number == signal.SIGINT else Terminated


COMMANDS = (
    "tune", "fit", "transform", "predict", "evaluate", "inspect", "verify", "diff", "export", "kinds",
    "config", "demo",
)  # fmt: skip

EPILOG = """\b
Environment:
  KAFEAT_JOBS       default of --jobs in every command that has it; other
                    options have variables like it
  KAFEAT_FIT_LABEL  default of --label in fit only, instead of KAFEAT_LABEL
  KAFEAT_COMPILED   0: compute with NumPy, without the compiled core
  NO_COLOR          disable colours
  FORCE_COLOR       use colours also in pipes
  The command line takes precedence over these variables.

\b
Tab completion:
  eval "$(_KAFEAT_COMPLETE=bash_source kafeat)"

\b
Exit codes:
  0    success
  1    internal fault (a bug; with a traceback)
  2    wrong usage or config
  3    bad data: unreadable, missing columns, values out of bounds
  4    bad model file
  5    a problem of the system: no such file, permission denied, disk full,
       out of memory
  6    quality gate not met
  130  interrupted (SIGINT)
  143  terminated (SIGTERM)
"""


class LazyGroup(click.Group):
    """A group that imports the module of a command when the command is called."""

    context_class = Context

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        command = getattr(import_module(f"kafeat.cli.{name}"), name)
        return completed(command) if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if ctx.resilient_parsing or self.get_command(ctx, args[0]) is not None:
            return super().resolve_command(ctx, args)
        from kafeat.contract.describe import nearest

        # if the name is a path, click 8.1 itself would show the help and succeed
        raise click.UsageError(f"No such command {args[0]!r}{nearest(args[0], COMMANDS) or '.'}", ctx)


def _tell_version(context: click.Context, _option: click.Parameter, asked: bool) -> None:
    if not asked or context.resilient_parsing:
        return
    click.echo(f"kafeat {__version__}")
    if context.params["verbose"]:
        from kafeat.runtime.environment import describe

        click.echo("\n".join(describe()))
    context.exit()


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--verbose", "-v", is_flag=True, is_eager=True, help="With --version: also libraries, machine and core."
)
@click.option(
    "--version", is_flag=True, expose_value=False, callback=_tell_version, help="Show the version and exit."
)
def kafeat(verbose: bool) -> None:
    """Turn tables into explicit kernel features.

    Choose a map for a table and its label, fit it, stream files of any size through it, and evaluate it:

    \b
      kafeat tune sample_data/digits.parquet best.yaml --label label --time 30s
      kafeat fit --config best.yaml sample_data/digits.parquet map.joblib \\
          --label label
      kafeat transform --model map.joblib sample_data/digits.parquet \\
          features.parquet --keep label
      kafeat evaluate --model map.joblib sample_data/digits.parquet --label label
    """


kafeat.params.append(color_option("KAFEAT_COLOR"))


def main() -> NoReturn:
    """Run the command line and exit with a documented code."""
    listen()
    _mend_streams()
    watch_signals()
    # Read before click parses the options, so that errors in them are also JSON.
    json_options = {"--log-format=json", ("--log-format", "json")} & {*sys.argv, *pairwise(sys.argv)}
    if json_options or os.environ.get("KAFEAT_LOG_FORMAT") == "json":
        log.settings.log_format = "json"
    log.apply_color(sys.argv)
    code = _run()
    with suppress(Interrupted, Terminated, OSError):  # a second signal, or a full disk
        remove_ours()
        sys.stderr.flush()
    # Not sys.exit: after a signal, a thread of Arrow may wait for the interpreter, which would then wait for the thread
    # for ever. Everything is written and closed by now.
    os._exit(code)


def _mend_streams() -> None:
    """Reopen closed standard streams, so that no file gets the numbers 0 to 2, and replace unencodable characters."""
    for number, flags in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            # stdin is opened for writing, and stdout for reading, so that using them still fails.
            os.open(os.devnull, flags)
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115  # for the life of the process
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _run() -> int:
    try:
        code = kafeat.main(standalone_mode=False, prog_name="kafeat", complete_var="_KAFEAT_COMPLETE")
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        return _misused(error)
    except PartsError as error:
        return log.failed_parts(error)
    except KafeatError as error:
        return log.error(str(error), error.exit_code, error.retry)
    except (Interrupted, Terminated, KeyboardInterrupt, click.Abort) as error:
        code = getattr(error, "exit_code", Interrupted.exit_code)
        return log.error(_noted(NAMES[code - 128], error), code, retry=True)
    except SystemExit:
        # With standalone_mode off, click and rich exit in two cases: the reader of our pipe has closed it, or a shell
        # wanted completions.
        return 0
    except OSError as error:
        return log.error(f"{error.filename or 'system'}: {error.strerror or error}", 5, may_pass(error))
    except Exception as error:  # out of memory or threads, or a bug
        if no_room(error):
            told = f" ({error})" if str(error) else ""
            return log.error(f"out of memory{told}: lower chunk_rows, n_components or --jobs", 5, retry=True)
        # This is a bug. The user can only report it, with the traceback.
        log.fault(traceback.format_exc())
        return 1


def _misused(error: click.ClickException) -> int:
    name_variable(error)
    log.usage(error)
    warn_of_unknown_variables(kafeat)
    return error.exit_code


def _noted(message: str, error: BaseException) -> str:
    """Append the notes of an exception, such as advice to resume, to a message."""
    return "; ".join([message, *getattr(error, "__notes__", ())])

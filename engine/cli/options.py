"""The commands and their options, made from the table of the machine contract."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, NoReturn

from engine.cli import values
from engine.cli.pages import OVERVIEW, PAGES, ending, summary
from engine.cli.streams import columns
from engine.contract.fields import FIELDS, Field, Group, Kind
from engine.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


Asked = frozenset[str] | None
COMMANDS = tuple(PAGES)
SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")
_HELP_AT = 32


class _Help(argparse.RawDescriptionHelpFormatter):
    """Keeps our line breaks where they fit.

    Given a width, it need not load what finds one out, at each option.
    """

    def __init__(self, prog: str, width: int = 0) -> None:
        width = width or columns(sys.stdout) - 2
        super().__init__(prog, max_help_position=min(_HELP_AT, width // 3), width=width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        import textwrap  # noqa: PLC0415 - 5 ms, and only for help

        lines: list[str] = []
        for line in text.splitlines():
            margin = line[: len(line) - len(line.lstrip())]
            further = margin + "    " if margin else ""
            lines += textwrap.wrap(line, width, subsequent_indent=further) or [""]
        return "\n".join(indent + line for line in lines)


class _Parser(argparse.ArgumentParser):
    """Raises our own error, so that a slip costs one sentence and not a page of usage."""

    def error(self, message: str) -> NoReturn:
        text = message[:1].upper() + message[1:]
        raise UsageError(f"{text.rstrip('.')}. See {self.prog} --help.")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The options of one command; ``given`` holds those of the contract that were stated.

    Raises:
        UsageError: an unknown command or option, or a value that cannot be read.
    """
    command = argv[0] if argv and argv[0] in COMMANDS else None
    if command is None:
        parser = _Parser(prog="plimsoll", formatter_class=_Help, allow_abbrev=False)
        _overview(parser)
        options = parser.parse_args(argv)
    else:
        # Some fifty options: only what is asked for is built.
        options = _parser_of(command, _asked(argv)).parse_args(argv[1:])
        options.version = False
    options.command = command
    options.given = {
        f.name: getattr(options, f.name)
        for f in FIELDS
        if getattr(options, f.name, None) is not None
    }
    return options


def help_of(command: str, width: int) -> str:
    """All that ``--help`` says of a command, in lines of at most ``width``."""
    parser = _parser_of(command, None)
    parser.formatter_class = lambda prog: _Help(prog, width)
    return parser.format_help()


def _parser_of(command: str, asked: Asked) -> _Parser:
    page = PAGES[command]
    parser = _Parser(
        prog=f"plimsoll {command}", usage=page.usage, description=page.about, epilog=ending(page),
        formatter_class=_Help, allow_abbrev=False,
    )  # fmt: skip
    _BUILDERS[command](parser, asked)
    return parser


def parse_window(argv: Sequence[str]) -> argparse.Namespace:
    """The options of the window.

    Raises:
        UsageError: an unknown option, or one without its value.
    """
    parser = _Parser(prog="plimsoll", add_help=False, allow_abbrev=False, formatter_class=_Help)
    parser.add_argument("--offline", action="store_true")
    parser.add_argument("--endpoint", type=values.endpoint)
    parser.add_argument("--replay")
    parser.add_argument("--reset", action="store_true")
    parser.add_argument("--safe", action="store_true")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("file", nargs="?")
    return parser.parse_args(argv)


def _asked(argv: Sequence[str]) -> frozenset[str] | None:
    """The options that ``argv`` may hold; None for all, which help shows."""
    words = {word.split("=", 1)[0] for word in argv}
    short = {word[:2] for word in words if not word.startswith("--")}
    return None if words & {"-h", "--help"} else frozenset(words | short)


def _overview(parser: _Parser) -> None:
    parser.usage = "plimsoll [COMMAND] [options]"
    parser.description = OVERVIEW
    parser.add_argument("--version", action="store_true", help="show the version and leave")
    parser.add_argument("command", nargs="?", type=_no_command, help=argparse.SUPPRESS)


def _no_command(name: str) -> str:
    message = f"There is no command {name[:80]!r}: say {', '.join(COMMANDS)}, or see --help."
    raise UsageError(message)


def _size(parser: _Parser, asked: Asked) -> None:
    parser.add_argument("model", nargs="?", metavar="MODEL", help=argparse.SUPPRESS)
    parser.add_argument("--batch", metavar="FILE", help="JSON Lines of requests; - reads stdin")
    parser.add_argument("--json", action="store_true", help="one JSON object, as for a batch")
    parser.add_argument(
        "--with", action="append", type=_beside, metavar="'MODEL …'",
        help="a further model on the same machine, with its own options; may be repeated",
    )  # fmt: skip
    _hub(parser)
    _contract(parser, asked)


def _launch(parser: _Parser, asked: Asked) -> None:
    from engine.launch.dialect import NODE_DEVICES  # noqa: PLC0415 - of this command alone

    parser.add_argument("model", nargs="?", metavar="MODEL", help=argparse.SUPPRESS)
    parser.add_argument(
        "--form", metavar="NAME",
        help="docker, compose, kubernetes … (default: the command); all shows every form",
    )  # fmt: skip
    parser.add_argument(
        "--gpus-per-node", type=values.device_number, default=NODE_DEVICES, metavar="N",
        help="devices of one node: a vLLM plan that takes more is written for several, each form "
        "for every node (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="one JSON object")
    _hub(parser)
    _contract(parser, asked)


def _beside(text: str) -> dict[str, object]:
    """The request that ``--with 'MODEL --runtime …'`` states.

    Raises:
        UsageError: an unknown option in it, or a value that cannot be read.
    """
    import shlex  # noqa: PLC0415 - seldom needed

    try:
        words = shlex.split(text)
    except ValueError as error:
        message = f"--with {text[:80]!r} has a quotation mark that isn't closed."
        raise UsageError(message, field="with") from error
    parser = _Parser(prog="plimsoll size", add_help=False, allow_abbrev=False)
    parser.add_argument("model")
    _contract(parser, _asked(words))
    stated = vars(parser.parse_args(words))
    return {name: value for name, value in stated.items() if value is not None}


def _report(parser: _Parser, asked: Asked) -> None:
    parser.add_argument("model", nargs="?", metavar="MODEL", help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="where to")
    parser.add_argument(
        "--page", choices=("a4", "letter"), default="a4", type=str.lower,
        help="the paper of a PDF (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the answer of size --json too")
    parser.add_argument("--recording", metavar="FILE", help="a recording to draw over the plan")
    parser.add_argument(
        "--log", metavar="FILE",
        help="a runtime's start-up log or out-of-memory text; - reads stdin. Its settings count "
        "where no other is given",
    )  # fmt: skip
    _hub(parser)
    _contract(parser, asked)


def _kv(parser: _Parser, _asked: Asked) -> None:
    parser.add_argument("model", metavar="MODEL", help=argparse.SUPPRESS)
    parser.add_argument(
        "-c", "--context", "--max-model-len", dest="max_model_len", type=values.tokens,
        metavar="N", help="tokens of one request, such as 8192 or 32k; a workspace has its own",
    )  # fmt: skip
    parser.add_argument(
        "--kv-dtype", "--kv-cache-dtype", dest="kv_cache_dtype", metavar="D",
        help="auto (the model's own, or a workspace's), bf16, fp8, q8_0 …",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="one JSON object")
    _hub(parser)


def _machine(parser: _Parser, _asked: Asked) -> None:
    _runtimes(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object")


def _runtimes(parser: _Parser) -> None:
    parser.add_argument(
        "--runtimes", action="store_true",
        help="ask this computer's runtimes what they hold, over its loopback alone",
    )  # fmt: skip


def _watch(parser: _Parser, _asked: Asked) -> None:
    _runtimes(parser)
    parser.add_argument("--jsonl", "--json", action="store_true", help="one JSON object a sample")
    parser.add_argument("--record", metavar="FILE", help="keep the samples in a new file")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--replay", metavar="FILE", help="show a recording instead of this machine")
    source.add_argument(
        "--prometheus", metavar="URL", help="ask an exporter or a Prometheus server instead"
    )
    source.add_argument(
        "--simulate", action="store_true", help="eight GPUs that aren't there, and a model on them"
    )
    parser.add_argument(
        "--since",
        type=values.moment,
        metavar="TIME",
        help="what that server has kept, from then on",
    )
    parser.add_argument("--until", type=values.moment, metavar="TIME", help="and till then (now)")
    parser.add_argument("--count", type=values.count, metavar="N", help="stop after N samples")
    parser.add_argument(
        "--interval",
        type=values.seconds,
        metavar="S",
        help="seconds (1; 0.2 for a while after a load begins, 5 on a battery or from a server)",
    )


def _verify(parser: _Parser, _asked: Asked) -> None:
    parser.add_argument("model", metavar="MODEL", help=argparse.SUPPRESS)
    parser.add_argument("--python", metavar="PATH", help="a Python that has torch and transformers")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    _hub(parser)


def _parse_log(parser: _Parser, asked: Asked) -> None:
    parser.add_argument("log", metavar="FILE", help="the log; - reads stdin")
    parser.add_argument("--model", metavar="MODEL", help="the model that ran")
    parser.add_argument(
        "--learn",
        action="store_true",
        help="keep what this run on this machine measured: plans of the same follow it",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    _hub(parser)
    _contract(parser, asked)


def _learned(parser: _Parser, _: Asked) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object a run")
    parser.add_argument("-o", "--output", metavar="FILE", help="write them to a new file")
    parser.add_argument("--forget", nargs="+", metavar="ID", help="forget those runs, or all")


def _completion(parser: _Parser, _: Asked) -> None:
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


def whole() -> argparse.ArgumentParser:
    """One parser of all commands with all their options, to make completions of."""
    parser = _Parser(prog="plimsoll")
    commands = parser.add_subparsers(parser_class=_Parser)
    for name, build in _BUILDERS.items():
        build(commands.add_parser(name, help=summary(PAGES[name])), None)
    return parser


def _hub(parser: _Parser) -> None:
    group = parser.add_argument_group("Hub")
    group.add_argument("--offline", action="store_true", help="never ask the Hub")
    group.add_argument(
        "--endpoint", type=values.endpoint, metavar="URL", help="another Hub (default: HF_ENDPOINT)"
    )


def _contract(parser: _Parser, asked: Asked) -> None:
    for heading in Group:
        fields = [
            field
            for field in FIELDS
            if field.group is heading
            and not (field.inline or field.name == "model")
            and (asked is None or asked.intersection(_flags(field)))
        ]
        if not fields:
            continue
        group = parser.add_argument_group(heading.value)
        for field in fields:
            _option(group, field)


def _flags(field: Field) -> tuple[str, ...]:
    negated = (field.option.replace("--", "--no-", 1),) if field.kind is Kind.BOOLEAN else ()
    return (field.option, *field.aliases, *negated)


def _option(group: argparse._ArgumentGroup, field: Field) -> None:  # pyright: ignore[reportPrivateUsage]  # argparse has no public name for it
    flags = (field.option, *field.aliases)
    text = field.help.replace("%", "%%")
    if field.kind is Kind.BOOLEAN:
        action = argparse.BooleanOptionalAction
        group.add_argument(*flags, action=action, default=None, dest=field.name, help=text)
        return
    few = 0 < len(field.choices) <= _MOST_CHOICES_SHOWN
    metavar = "|".join(field.choices) if few else _METAVAR_OF.get(field.name, _METAVAR[field.kind])
    reader = _reader(field)
    group.add_argument(*flags, dest=field.name, type=reader, metavar=metavar, help=text)


_MOST_CHOICES_SHOWN = 4
_METAVAR_OF = {"from_command": "COMMAND"}
_METAVAR = {
    Kind.TEXT: "NAME",
    Kind.INTEGER: "N",
    Kind.NUMBER: "X",
    Kind.SWITCH: "on|off|auto",
    Kind.NUMBERS: "X,X",
    Kind.INTEGERS: "N,N",
}


def _reader(field: Field) -> Callable[[str], object]:
    if field.kind is Kind.INTEGER:
        if field.name.endswith("_bytes"):
            return values.sizes
        return values.tokens if field.name in _TOKENS else values.whole_number
    readers = {
        Kind.NUMBER: values.number,
        Kind.NUMBERS: values.numbers,
        Kind.INTEGERS: values.integers,
    }
    return readers.get(field.kind, str)


_TOKENS = {"max_model_len", "live_tokens", "max_num_batched_tokens", "n_ctx", "prompt_len"}


_BUILDERS: dict[str, Callable[[_Parser, Asked], None]] = {
    "size": _size,
    "launch": _launch,
    "kv": _kv,
    "machine": _machine,
    "watch": _watch,
    "report": _report,
    "verify": _verify,
    "parse-log": _parse_log,
    "learned": _learned,
    "completion": _completion,
}

"""The commands and their options, made from the table of the machine contract."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, NoReturn

from engine.cli import values
from engine.cli.streams import columns
from engine.contract.fields import FIELDS, Field, Group, Kind
from engine.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


Asked = frozenset[str] | None
COMMANDS = (
    "size",
    "launch",
    "kv",
    "machine",
    "watch",
    "report",
    "verify",
    "parse-log",
    "learned",
    "completion",
)
SHELLS = ("bash", "zsh", "fish", "powershell")

OVERVIEW = """\
Will this model fit on this machine, where does every byte go, and is that what really happens?

  plimsoll [FILE.plimsoll]         open the window, with a workspace that was saved in it
  plimsoll size MODEL [options]    budget by region, verdict and limits
  plimsoll size --batch FILE|-     the same for JSON Lines, one answer a line
  plimsoll launch MODEL [options]  the command that starts the plan, or its container
  plimsoll kv MODEL --context N    the KV cache worked out in the open
  plimsoll machine                 this machine's devices and what is free on them now
  plimsoll watch                   follow the devices, record or replay
  plimsoll report MODEL -o FILE    the answer as PDF, HTML, Markdown, CSV or JSON
  plimsoll parse-log FILE|-        what a runtime's log states, and why the run failed
  plimsoll learned                 the measured runs that plans for this machine follow
  plimsoll verify MODEL            our parameters beside those of the model built by transformers
  plimsoll completion SHELL        what makes a shell complete these commands

MODEL is a Hub id or address, a config.json, a model folder, a .gguf or .safetensors file, or a
name of the bundled catalogue. Files and the catalogue need no network; the Hub is asked only
for a model that you name and that is nowhere else. A saved workspace (.plimsoll) brings its model
and plan; options that you state count instead of its own, and the Hub is not asked.

Try:
  plimsoll size meta-llama/Llama-3.1-8B --gpu "RTX 4090" --context 8k
  plimsoll size YOUR-MODEL.gguf --runtime llama.cpp --n-ctx 16384
  plimsoll kv Qwen/Qwen3-8B --context 32k --kv-dtype fp8
  plimsoll size --from-command "vllm serve Qwen/Qwen3-8B --max-model-len 32768" --gpu L40S

The window takes --offline (never ask the Hub), --endpoint URL (another Hub), --replay FILE (a
recording instead of this machine), --reset (settings as new), --safe (settings, session and
drivers left aside, this once).

Exit status of size: 0 it fits (also tight), 1 it does not, 2 bad input, 3 cannot be said.
"""

SIZE_NOTE = """\
What is not given takes the runtime's own default for the device, and every default used is
listed under "Assumed". Without --gpu the plan is for this machine. Numbers of tokens may be
written 32k, sizes 24GiB.
"""


class _Help(argparse.RawDescriptionHelpFormatter):
    """Keeps our line breaks. Given a width, it need not load what finds one out, at each option."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32, width=columns(sys.stdout) - 2)


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
    parser = _Parser(
        prog=f"plimsoll {command}" if command else "plimsoll",
        formatter_class=_Help,
        allow_abbrev=False,
    )
    if command is None:
        _overview(parser)
        options = parser.parse_args(argv)
    else:
        # Some fifty options: only what is asked for is built.
        _BUILDERS[command](parser, _asked(argv))
        options = parser.parse_args(argv[1:])
        options.version = False
    options.command = command
    options.given = {
        f.name: getattr(options, f.name)
        for f in FIELDS
        if getattr(options, f.name, None) is not None
    }
    return options


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
    parser.description = "Size a model: where every byte goes, and whether that fits."
    parser.epilog = SIZE_NOTE
    parser.usage = "plimsoll size MODEL [options]  |  plimsoll size --batch FILE|-"
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

    parser.description = "Write the command that starts the plan, with the flags that matter."
    parser.epilog = SIZE_NOTE
    parser.usage = "plimsoll launch MODEL [options]"
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
    parser.description = (
        "Write the answer as a report: plan, picture, regions, assumptions.\n"
        "The file's name says which kind: .pdf, .html and .md to read, .csv and .json (the same\n"
        "as size --json) to work on, with every figure in bytes.\n\n"
        "--recording and --log set what a run held beside the plan, with the error by region."
    )
    parser.epilog = SIZE_NOTE
    parser.usage = "plimsoll report MODEL -o FILE.{pdf,html,md,csv,json} [options]"
    parser.add_argument("model", metavar="MODEL", help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="where to")
    parser.add_argument("--page", choices=("a4", "letter"), default="a4", type=str.lower)
    parser.add_argument("--recording", metavar="FILE", help="a recording to draw over the plan")
    parser.add_argument(
        "--log", metavar="FILE",
        help="a runtime's start-up log or out-of-memory text; - reads stdin. Its settings count "
        "where no other is given",
    )  # fmt: skip
    _hub(parser)
    _contract(parser, asked)


def _kv(parser: _Parser, _asked: Asked) -> None:
    parser.description = "The KV cache by the book: formula, inputs, bytes per token, total."
    parser.usage = "plimsoll kv MODEL --context N [--kv-dtype D] [--json]"
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
    parser.description = (
        "This machine's devices as they are detected: capacities, what is free now, how we know.\n"
        "What is corrected in the window counts in the window alone."
    )
    _runtimes(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object")


def _runtimes(parser: _Parser) -> None:
    parser.add_argument(
        "--runtimes", action="store_true",
        help="ask this computer's runtimes what they hold, over its loopback alone",
    )  # fmt: skip


def _watch(parser: _Parser, _asked: Asked) -> None:
    parser.description = "Follow the devices once a second, until Ctrl+C."
    _runtimes(parser)
    parser.add_argument("--jsonl", action="store_true", help="one JSON object a sample")
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
    parser.description = (
        "Build the model without weights, in a process of its own, and compare the parameters.\n"
        "Needs a Python that has torch and transformers; runs no code of the repository.\n\n"
        "Exit status: 0 both counts are equal, 1 they differ, 2 it could not be built."
    )
    parser.usage = "plimsoll verify MODEL [--python PATH] [--json]"
    parser.add_argument("model", metavar="MODEL", help=argparse.SUPPRESS)
    parser.add_argument("--python", metavar="PATH", help="a Python that has torch and transformers")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    _hub(parser)


def _parse_log(parser: _Parser, asked: Asked) -> None:
    parser.description = (
        "Read a start-up log, a metrics page or an out-of-memory text: what it states of each\n"
        "region against our prediction and, for a failure, why and what would have helped.\n"
        "The log's model is looked up in the catalogue; --model and the options of size go before\n"
        "what the log says.\n\n"
        "Exit status: 0 no failure, 1 a failure, 2 bad input, 3 no line is known."
    )
    parser.usage = "plimsoll parse-log FILE|- [--json] [--model MODEL] [options]"
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
    parser.description = (
        "The measured runs of this machine, with what the rules had said. Plans with the same\n"
        "devices, runtime, release, model and settings follow them and say so."
    )
    parser.usage = "plimsoll learned [--json] [-o FILE] [--forget ID|all …]"
    parser.add_argument("--json", action="store_true", help="one JSON object a run")
    parser.add_argument("-o", "--output", metavar="FILE", help="write them to a new file")
    parser.add_argument("--forget", nargs="+", metavar="ID", help="forget those runs, or all")


def _completion(parser: _Parser, _: Asked) -> None:
    parser.description = (
        "Print what makes a shell complete plimsoll's commands and options.\n\n"
        '  bash        eval "$(plimsoll completion bash)"         in ~/.bashrc\n'
        '  zsh         eval "$(plimsoll completion zsh)"          in ~/.zshrc, after compinit\n'
        "  fish        plimsoll completion fish | source          in config.fish\n"
        "  powershell  plimsoll completion powershell | Out-String | Invoke-Expression"
    )
    parser.usage = "plimsoll completion SHELL"
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


def whole() -> argparse.ArgumentParser:
    """One parser of all commands with all their options, to make completions of."""
    parser = _Parser(prog="plimsoll")
    commands = parser.add_subparsers(parser_class=_Parser)
    for name, build in _BUILDERS.items():
        # One without help counts as hidden.
        build(commands.add_parser(name, help=name), None)
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

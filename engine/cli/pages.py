"""What ``--help`` teaches: for each command its purpose, examples that run as printed, its exits.

The manual page says the same (``packaging/man.py``), and a test runs every example.
"""

from __future__ import annotations

from typing import NamedTuple


class Page(NamedTuple):
    """The words of one command."""

    usage: str
    about: str
    examples: str
    """One to a line. What begins with YOUR is the reader's own; all else runs as it stands."""
    status: str
    """What the exit status says."""
    note: str = ""


OVERVIEW = """\
Will this model fit on this machine, where does every byte go, and is that what
really happens?

  plimsoll [FILE.plimsoll]         open the window, with a workspace saved in it
  plimsoll size MODEL [options]    budget by region, verdict and limits
  plimsoll size --batch FILE|-     the same for JSON Lines, one answer a line
  plimsoll launch MODEL [options]  the command that starts it, or its container
  plimsoll kv MODEL --context N    the KV cache worked out in the open
  plimsoll machine                 this machine's devices, and what is free now
  plimsoll watch                   follow the devices, record or replay
  plimsoll report MODEL -o FILE    the answer as PDF, HTML, Markdown, CSV, JSON
  plimsoll parse-log FILE|-        what a log states, and why the run failed
  plimsoll learned                 the measured runs that plans here follow
  plimsoll verify MODEL            our parameters beside those of transformers
  plimsoll completion SHELL        what makes a shell complete these commands

MODEL is a Hub id or address, a config.json, a model folder, a .gguf or
.safetensors file, or a name of the bundled catalogue. Files and the catalogue
need no network; the Hub is asked only for a model that you name and that is
nowhere else. A saved workspace (.plimsoll) brings its model and plan; options
that you state count instead of its own, and the Hub is not asked.

Try:
  plimsoll size meta-llama/Llama-3.1-8B --gpu "RTX 4090" --context 8k
  plimsoll size YOUR-MODEL.gguf --runtime llama.cpp --n-ctx 16384
  plimsoll kv Qwen/Qwen3-8B --context 32k --kv-dtype fp8
  plimsoll size --from-command "vllm serve Qwen/Qwen3-8B" --gpu L40S

The window takes --offline (never ask the Hub), --endpoint URL (another Hub),
--replay FILE (a recording instead of this machine), --reset (settings as new),
--safe (settings, session and drivers left aside, this once).

Sizes are GiB (2^30 bytes) for people and whole bytes in JSON. Every command but
completion takes --json; its JSON Schemas lie in resources/schema. Diagnostics go
to stderr, and NO_COLOR=1 takes the colours away.

Exit status of size: 0 it fits (also tight), 1 it does not, 2 bad input, 3 cannot
be said. Every other command ends with 2 for bad input too; see its --help.
"""

SIZE_NOTE = """\
What is not given takes the runtime's own default for the device, and every
default used is listed under "Assumed". Without --gpu the plan is for this
machine. Numbers of tokens may be written 32k (32,768), sizes 24GiB or 24GB.
Answers are in GiB (2^30 bytes), in JSON in bytes.
"""

PAGES = {
    "size": Page(
        "plimsoll size MODEL [options]\n       plimsoll size --batch FILE|-",
        "Size a model: where every byte goes, and whether that fits.",
        """\
plimsoll size meta-llama/Llama-3.1-8B --gpu "RTX 4090" --context 8k
plimsoll size Qwen/Qwen3-32B --gpu "2 x L40S" --tp 2 --json
plimsoll size YOUR-MODEL.gguf --runtime llama.cpp --n-ctx 16384
echo '{"model":"Qwen/Qwen3-8B","gpu":"L40S"}' | plimsoll size --batch -""",
        "0 it fits (also tight), 1 it does not, 2 bad input, 3 cannot be said (a bound).\n"
        "A batch ends with 0 once every line is answered, errors included.",
        SIZE_NOTE,
    ),
    "launch": Page(
        "plimsoll launch MODEL [options]",
        "Write the command that starts the plan, with the flags that matter.",
        """\
plimsoll launch Qwen/Qwen3-8B --gpu L40S --context 32k
plimsoll launch Qwen/Qwen3-32B --gpu "4 x L40S" --tp 4 --form compose
plimsoll launch --from-command 'vllm serve Qwen/Qwen3-8B' --gpu L40S""",
        "0 it was written, whether the plan fits or not; 2 bad input.",
        SIZE_NOTE,
    ),
    "kv": Page(
        "plimsoll kv MODEL --context N [--kv-dtype D] [--json]",
        "The KV cache by the book: formula, inputs, bytes per token, total.",
        """\
plimsoll kv meta-llama/Llama-3.1-8B --context 8192
plimsoll kv Qwen/Qwen3-8B --context 32k --kv-dtype fp8 --json""",
        "0 the total is exact, 2 bad input, 3 it is a bound.",
        "What the model needs, in bytes and GiB; a runtime reserves more: see size.\n",
    ),
    "machine": Page(
        "plimsoll machine [--runtimes] [--json]",
        "This machine's devices as they are detected: capacities, what is free now, how\n"
        "we know. What is corrected in the window counts in the window alone.",
        """\
plimsoll machine
plimsoll machine --runtimes
plimsoll machine --json""",
        "0 they are listed, 2 bad input.",
    ),
    "watch": Page(
        "plimsoll watch [--runtimes] [--jsonl] [--record FILE]\n"
        "                      [--replay FILE | --prometheus URL | --simulate]\n"
        "                      [--since TIME] [--until TIME] [--count N] [--interval S]",
        "Follow the devices once a second, until Ctrl+C.",
        """\
plimsoll watch --count 3
plimsoll watch --simulate --count 1 --jsonl
plimsoll watch --prometheus http://YOUR-SERVER:9400
plimsoll watch --record run.jsonl --count 2""",
        "0 the count or the recording has ended, 2 bad input, 130 Ctrl+C.",
    ),
    "report": Page(
        "plimsoll report MODEL -o FILE.{pdf,html,md,csv,json} [options]",
        "Write the answer as a report: plan, picture, regions, assumptions. The file's\n"
        "name says which kind: .pdf, .html and .md to read, .csv and .json (the same as\n"
        "size --json) to work on, with every figure in bytes. --recording and --log set what a\n"
        "run held beside the plan, with the error by region.",
        """\
plimsoll report Qwen/Qwen3-8B --gpu "RTX 4090" -c 8k -o plan.pdf
plimsoll report Qwen/Qwen3-8B --gpu L40S -o plan.md --json""",
        "0 it was written, whether the plan fits or not; 2 bad input.",
        SIZE_NOTE,
    ),
    "verify": Page(
        "plimsoll verify MODEL [--python PATH] [--json]",
        "Build the model without weights, in a process of its own, and compare the\n"
        "parameters. Needs a Python that has torch and transformers; runs no code of the\n"
        "repository.",
        """\
plimsoll verify meta-llama/Llama-3.1-8B
plimsoll verify Qwen/Qwen3-8B --python YOUR-ENVIRONMENT/bin/python""",
        "0 both counts are equal, 1 they differ, 2 it could not be built.",
    ),
    "parse-log": Page(
        "plimsoll parse-log FILE|- [--json] [--model MODEL] [options]",
        "Read a start-up log, a metrics page or an out-of-memory text: what it states of\n"
        "each region against our prediction and, for a failure, why and what would have\n"
        "helped. The log's model is looked up in the catalogue; --model and the options\n"
        "of size go before what the log says.",
        """\
plimsoll parse-log YOUR-RUN.log
plimsoll parse-log YOUR-RUN.log --model Qwen/Qwen3-8B --json
echo 'torch.OutOfMemoryError: CUDA out of memory.' | plimsoll parse-log -""",
        "0 no failure, 1 a failure, 2 bad input, 3 no line is known.",
        "Figures in GiB (2^30 bytes), in JSON in bytes.\n",
    ),
    "learned": Page(
        "plimsoll learned [--json] [-o FILE] [--forget ID|all …]",
        "The measured runs of this machine, with what the rules had said. Plans with the\n"
        "same devices, runtime, release, model and settings follow them and say so.",
        """\
plimsoll learned
plimsoll learned -o runs.jsonl""",
        "0 they are listed, even if there are none; 2 bad input.",
    ),
    "completion": Page(
        "plimsoll completion SHELL",
        "Print what makes a shell complete plimsoll's commands and options.\n\n"
        '  bash        eval "$(plimsoll completion bash)"    in ~/.bashrc\n'
        '  zsh         eval "$(plimsoll completion zsh)"     in ~/.zshrc, after compinit\n'
        "  fish        plimsoll completion fish | source     in config.fish\n"
        "  tcsh        plimsoll completion tcsh > ~/.plimsoll.tcsh, and in ~/.tcshrc\n"
        "              source ~/.plimsoll.tcsh\n"
        "  powershell  plimsoll completion powershell | Out-String | Invoke-Expression",
        "plimsoll completion bash",
        "0 it was printed, 2 no such shell.",
    ),
}


def summary(page: Page) -> str:
    """The purpose in a few words."""
    return page.about.replace("\n", " ").split(": ")[0].split(". ")[0].rstrip(".")


def ending(page: Page) -> str:
    """What stands below the options."""
    examples = "\n".join(f"  {line}" for line in page.examples.split("\n"))
    status = page.status.replace("\n", "\n  ")
    parts = [f"Examples:\n{examples}\n", f"Exit status:\n  {status}\n"]
    return "\n".join([page.note, *parts] if page.note else parts)

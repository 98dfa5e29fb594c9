"""Training prompts of the project's own: instructions × materials, in the shapes callers use.

They are the part of the training set that is left out of no fold: what the gathered data sets ask
for is narrow, and a fold that leaves one of them out must still know that code can be ported.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from paceline.bench.instructions import ASKED, Asked
from paceline.bench.materials import ANSWERS, CODE, DIFF, EDITOR_SYSTEMS, PROSE, STUBS, SYSTEMS

Message = dict[str, Any]
Row = dict[str, Any]

REPEATS = 2
"""Prompts made of each instruction, with different materials."""

COPY_RATIOS = {("code",): 0.05, ("chat",): 0.05, ("edit",): 0.85, ("edit", "chat"): 0.4}
"""What an answer of each kind is taken to copy, there being no answers."""

_PATHS = (
    "src/main.py", "lib/store.go", "app/models/user.rb", "web/index.js", "internal/core.rs",
    "pkg/api/client.ts", "config/prod.yaml", "Main.java",
)  # fmt: skip
_EXAMPLES = (
    "\n>>> f([1, 2])\n3",
    "\n\nExample:\ninput: 3 4\noutput: 7",
    '\nsolve("ab") => "ba"\nsolve("") => ""',
    "\nfind({4, 2}) -> {2, 4}",
)
_COMPLAINTS = (
    "Why does this fail? ", "This {} code does not work. ", "Something is off in this {} code. ",
    "I think there is a bug. ",
)  # fmt: skip
_WHOLE = (
    " Give me the full code.", " Return everything.", " Output only the new code.",
    " Show the complete new version.",
)  # fmt: skip
_NEW_FILE = (
    " New file, leave the others alone.", " Make a new file.", " In a separate file.",
    " New file; do not touch what is there.",
)  # fmt: skip
_FOR_READING = (
    "For reference only:\n\n", "Context (do not edit):\n\n", "Read only files:\n\n",
    "Background, reference files, leave them alone:\n\n",
)  # fmt: skip


def own_prompts(seed: int = 7) -> list[Row]:
    """Rows with `request` and `acceptable`; the same ones for the same seed."""
    return list(_Maker(random.Random(seed)).rows())


def _instructions(of: str, acceptable: str) -> list[str]:
    return [
        line
        for asked in ASKED
        if asked.of == of and asked.acceptable == (acceptable,)
        for line in asked.instructions
    ]


def _assistant(text: str) -> Message:
    return {"role": "assistant", "content": text}


def _system(text: str) -> Message:
    return {"role": "system", "content": text}


def _is_cjk(char: str) -> bool:
    return "\u3040" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7a3"


class _Maker:
    """Puts prompts together, with the choices of one random generator."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._new_code = _instructions("nothing", "code")
        self._talk = _instructions("nothing", "chat")

    def _chance(self, share: float) -> bool:
        return self._rng.random() < share

    def rows(self) -> Iterator[Row]:
        makers: dict[str, Callable[[str, Asked], Iterator[Row]]] = {
            "nothing": self._of_nothing, "prose": self._of_prose, "code": self._of_code,
            "stub": self._of_stub, "diff": self._of_diff, "own code": self._after_code,
            "own prose": self._after_prose, "own edit": self._after_edit,
        }  # fmt: skip
        for asked in ASKED:
            for line in asked.instructions:
                if self._chance(0.1):
                    line = self._rng.choice(["Please ", "Hi, ", "Can you help me? "]) + line
                for _ in range(1 if asked.of == "nothing" else REPEATS):
                    yield from makers[asked.of](line, asked)
        for line in self._new_code:
            yield from self._new_code_elsewhere(line)
        for line in self._talk:
            if self._chance(0.08):
                first, answer = self._rng.choice(self._new_code), self._answered_code()
                yield self._row(("chat",), self._user(first), answer, self._user(line))
        for _, stub in STUBS * 3:
            yield from self._gaps(stub)

    # ---- rows of each kind ----

    def _row(self, acceptable: tuple[str, ...], *messages: Message, **rest: Any) -> Row:
        if messages[0]["role"] != "system" and self._chance(0.3):
            messages = (_system(self._rng.choice(SYSTEMS)), *messages)
        return {
            "acceptable": acceptable,
            "copy_ratio": COPY_RATIOS[acceptable],
            "request": {"messages": [*messages], **rest},
        }

    def _of_nothing(self, line: str, asked: Asked) -> Iterator[Row]:
        yield self._row(asked.acceptable, self._user(line))
        if self._chance(0.35):
            first, answer = self._rng.choice(self._talk), _assistant(self._rng.choice(PROSE)[1])
            yield self._row(asked.acceptable, self._user(first), answer, self._user(line))

    def _of_prose(self, line: str, asked: Asked) -> Iterator[Row]:
        text = self._prose(line)
        if self._chance(0.2):
            yield self._row(asked.acceptable, _system(line), self._user(text))
        else:
            yield self._row(asked.acceptable, self._user(self._joined(line, text)))

    def _of_stub(self, line: str, asked: Asked) -> Iterator[Row]:
        language, stub = self._rng.choice(STUBS)
        yield self._row(
            asked.acceptable, self._user(self._joined(line, self._fenced(language, stub)))
        )

    def _of_diff(self, line: str, asked: Asked) -> Iterator[Row]:
        text = self._joined(line, self._fenced("diff", DIFF))
        yield self._row(asked.acceptable, self._user(text))

    def _of_code(self, line: str, asked: Asked) -> Iterator[Row]:
        language, code = self._code()
        if asked.acceptable == ("edit",):
            if self._chance(0.08):
                line = self._rng.choice(_COMPLAINTS).format(language) + line
            elif self._chance(0.08):
                line += self._rng.choice(_WHOLE)
        shape = self._rng.random()
        if self._chance(0.04):
            fenced = self._fenced(language, code)
            yield self._row(asked.acceptable, _system(line), self._user(fenced))
        elif shape < 0.6:
            rest: dict[str, Any] = {}
            if asked.acceptable == ("edit",) and self._chance(0.06):
                rest["prediction"] = {"type": "content", "content": code}
            text = self._joined(line, self._fenced(language, code))
            yield self._row(asked.acceptable, self._user(text), **rest)
        elif shape < 0.75:
            opening = self._rng.choice(
                ["Here are the files:\n\n", "The files in question:\n\n", ""]
            )
            yield self._with_files(asked.acceptable, opening, code, line)
        elif shape < 0.9:
            text = f"{line}\n\n{self._files(code)}"
            yield self._row(asked.acceptable, self._editor(), self._user(text))
        else:
            yield self._with_tool(asked.acceptable, line, code)

    def _after_code(self, line: str, asked: Asked) -> Iterator[Row]:
        first = self._rng.choice(self._new_code)
        if self._chance(0.4):
            change = self._rng.choice(_instructions("code", "edit"))
            first = self._joined(change, self._code()[1])
        answer = self._answered_code()
        yield self._row(asked.acceptable, self._user(first), answer, self._user(line))

    def _after_prose(self, line: str, asked: Asked) -> Iterator[Row]:
        first, answer = self._rng.choice(self._talk), _assistant(self._prose(line))
        yield self._row(asked.acceptable, self._user(first), answer, self._user(line))

    def _after_edit(self, line: str, asked: Asked) -> Iterator[Row]:
        text = self._prose(line)
        first = self._joined(self._rng.choice(_instructions("prose", "edit")), text)
        answer = _assistant(text)
        yield self._row(asked.acceptable, self._user(first), answer, self._user(line))

    def _new_code_elsewhere(self, line: str) -> Iterator[Row]:
        """New code beside files that stay as they are, and with examples."""
        if self._chance(0.12):
            yield self._row(("code",), self._user(line + self._rng.choice(_EXAMPLES)))
        if self._chance(0.25):
            yield self._with_tool(("code",), line + self._rng.choice(_NEW_FILE), self._code()[1])
        if self._chance(0.6):
            opening = self._rng.choice(_FOR_READING)
            yield self._with_files(("code",), opening, self._code()[1], line)
        if self._chance(0.1):
            yield self._row(("code",), self._user(line + self._rng.choice(_NEW_FILE)))

    def _gaps(self, stub: str) -> Iterator[Row]:
        rest = "    return result\n"
        blocks = f"BEFORE:\n```\n{stub}```\nAFTER:\n```\n{rest}```"
        marked = f"{stub}<CURSOR>\n}}"
        completer = _system("You complete code. Answer with what belongs at <CURSOR> alone.")
        for text in (
            f"Fill in the gap between the two parts. Return only the gap.\n\n{blocks}",
            f"<PRE> {stub} <SUF>{rest} <MID>",
            f"<|fim_prefix|>{stub}<|fim_suffix|>{rest}<|fim_middle|>",
            stub,
            stub,
        ):
            yield self._row(("code",), self._user(text))
        yield self._row(("code",), completer, self._user(marked))
        yield {
            "acceptable": ("code",),
            "copy_ratio": COPY_RATIOS[("code",)],
            "endpoint": "completions",
            "request": {"prompt": stub, "suffix": rest},
        }

    # ---- their parts ----

    def _user(self, text: str) -> Message:
        head, gap, rest = text.partition("\n\n")
        if gap and self._chance(0.15):
            parts = [{"type": "text", "text": head}, {"type": "text", "text": rest}]
            return {"role": "user", "content": parts}
        return {"role": "user", "content": text}

    def _code(self) -> tuple[str, str]:
        """A language and code, a third of the time several snippets long."""
        picked = self._rng.sample(CODE, self._rng.choice([1, 1, 1, 2, 3, 5]))
        return picked[0][0], "\n\n".join(code.rstrip() for _, code in picked) + "\n"

    def _prose(self, line: str) -> str:
        """Prose that fits the instruction's language, mostly; up to six paragraphs."""
        wanted = {"zh", "ja", "ko"} if any(map(_is_cjk, line)) else {"de", "es", "fr", "ru", "uk"}
        if any("\u0400" <= char <= "\u04ff" for char in line) and self._chance(0.8):
            wanted = {"ru", "uk"}
        elif line.isascii() and self._chance(0.85):
            wanted = {"en"}
        texts = [text for language, text in PROSE if language in wanted]
        count = self._rng.choice([1, 1, 1, 2, 3, 6])
        return "\n\n".join(self._rng.choice(texts) for _ in range(count))

    def _fenced(self, language: str, code: str) -> str:
        fences = [f"```{language}\n{code}```", f"```\n{code}```", f"<code>\n{code}</code>"]
        return self._rng.choice([*fences, code, code])

    def _joined(self, line: str, material: str) -> str:
        """An instruction and its material, in the order and dress that callers give them."""
        gap = self._rng.choice(["\n\n", "\n\n", "\n"])
        shape = self._rng.random()
        if shape < 0.5:
            return f"{line}{gap}{material}"
        if shape < 0.8:
            return f"{material.rstrip()}{gap}{line}"
        if shape < 0.88:
            return f"### Instruction:\n{line}\n\n### Input:\n{material}\n\n### Response:"
        if shape < 0.94:
            return f"<input>\n{material}\n</input>\n<request>{line}</request>"
        return f"{self._rng.choice(['Consider this:', 'I have this:'])}\n\n{material}\n\n{line}"

    def _files(self, code: str) -> str:
        codes = [code, self._code()[1]] if self._chance(0.5) else [code]
        return "\n\n".join(f"{self._rng.choice(_PATHS)}\n```\n{each}```" for each in codes)

    def _editor(self) -> Message:
        return _system(self._rng.choice(EDITOR_SYSTEMS))

    def _answered_code(self) -> Message:
        language, code = self._code()
        opening = self._rng.choice(["Here you are:\n\n", "Sure!\n\n", ""])
        ending = self._rng.choice(["", "\n\nLet me know if you need more."])
        return _assistant(f"{opening}```{language}\n{code}```{ending}")

    def _with_files(self, acceptable: tuple[str, ...], opening: str, code: str, line: str) -> Row:
        given, answer = self._user(opening + self._files(code)), self._rng.choice(ANSWERS)
        return self._row(acceptable, self._editor(), given, _assistant(answer), self._user(line))

    def _with_tool(self, acceptable: tuple[str, ...], line: str, code: str) -> Row:
        function = {"name": "read_file", "arguments": "{}"}
        call = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        }
        result = {"role": "tool", "tool_call_id": "c1", "content": code}
        tools = [{"type": "function", "function": {"name": "read_file"}}]
        messages = (self._editor(), self._user(line), call, result)
        return self._row(acceptable, *messages, tools=tools)

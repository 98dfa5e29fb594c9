"""Builds the compiled twins of `gateway/paceline/native/` for the wheel, or beside their sources.

They are optional: where they cannot be compiled, as without a C compiler, the build says so and
goes on, and the gateway runs on the Python that they are twins of. Into a wheel go `paceline sim`'s
scenarios too, which lie outside the package.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext

PACKAGE = Path("gateway/paceline/native")
FLAGS = ["-O2", "-std=c11", "-Wall", "-Wextra", "-ffp-contract=off", "-g0"]
"""The last so that both twins round every product on every machine: `a * b + c` is two steps."""


class CompiledTwins(BuildHookInterface[Any]):
    """hatchling's hook, by its name for a project's own: `custom`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        if version != "editable":
            workloads = root / "configs" / "workloads"
            build_data["force_include"][str(workloads)] = "paceline/bench/workloads"
        with tempfile.TemporaryDirectory() as scratch:
            for built in _compiled(root, Path(scratch)):
                place = root / PACKAGE / built.name
                place.unlink(missing_ok=True)  # who has it loaded keeps the old one, and lives on
                shutil.copy2(built, place)
                if version != "editable":  # there, beside its source is where it is looked for
                    build_data["force_include"][str(place)] = f"paceline/native/{built.name}"
                    build_data["pure_python"] = False
                    build_data["infer_tag"] = True


def _compiled(root: Path, scratch: Path) -> list[Path]:
    """The modules that could be built, one for each C file."""
    modules = [
        Extension(
            f"paceline.native.{source.stem}",
            [str(source)],
            depends=[*map(str, source.parent.glob("*.h"))],
            extra_compile_args=FLAGS,
            optional=True,
        )
        for source in sorted((root / PACKAGE).glob("*.c"))
    ]
    command = build_ext(Distribution({"name": "paceline", "ext_modules": modules}))
    command.build_temp = str(scratch / "objects")
    command.build_lib = str(scratch / "modules")
    command.ensure_finalized()
    command.run()
    return [built for each in command.get_outputs() if (built := Path(each)).exists()]

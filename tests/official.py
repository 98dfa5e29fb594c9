"""The vendors' own clients, and a simulated worker for them, for tests of what they make of it."""

from __future__ import annotations

import contextlib
import io
import wave
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import httpx
import openai

from paceline.core.types import Speculation
from paceline.testing.sim_worker import SimWorkerOptions, parse_speculation, running_sim_worker

NGRAM = parse_speculation(
    '{"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_min": 2,'
    ' "prompt_lookup_max": 4}'
)
MODEL = "smollm2"
WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 2},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
    },
    "required": ["city", "days", "unit"],
}
CHAT_TOOLS: Any = [{"type": "function", "function": {"name": "weather", "parameters": WEATHER}}]


class Clients:
    """OpenAI's client, Anthropic's, and plain HTTP, of one worker."""

    def __init__(
        self,
        http: httpx.AsyncClient,
        openai_client: openai.AsyncOpenAI,
        anthropic_client: anthropic.AsyncAnthropic,
    ) -> None:
        self.http, self.openai, self.anthropic = http, openai_client, anthropic_client

    async def set_faults(self, *faults: dict[str, Any]) -> None:
        response = await self.http.post("/sim/faults", json={"faults": faults})
        assert response.status_code == 200, response.text

    async def metric(self, name: str) -> float:
        """The sum of the samples with this name; KeyError if there are none."""
        lines = (await self.http.get("/metrics")).text.splitlines()
        values = [float(s.rpartition(" ")[2]) for s in lines if s.startswith(f"vllm:{name}{{")]
        if not values:
            raise KeyError(name)
        return sum(values)


@contextlib.asynccontextmanager
async def connected(url: str, *, key: str = "none") -> AsyncIterator[Clients]:
    """Clients of whatever serves at `url`, a worker or a gateway."""
    async with (
        httpx.AsyncClient(base_url=url, timeout=10, verify=False) as http,
        openai.AsyncOpenAI(
            base_url=f"{url}/v1", api_key=key, max_retries=0, http_client=http
        ) as openai_client,
        # Its own HTTP library, without certificates, which take longer to load than a test.
        anthropic.AsyncAnthropic(
            base_url=url,
            api_key=key,
            max_retries=0,
            http_client=anthropic.DefaultAsyncHttpxClient(verify=False),
        ) as anthropic_client,
    ):
        yield Clients(http, openai_client, anthropic_client)


@contextlib.asynccontextmanager
async def clients(speculation: Speculation | None = NGRAM, **more: Any) -> AsyncIterator[Clients]:
    given = {"step_s": 0.001, "max_model_len": 2048, **more}
    async with (
        running_sim_worker(SimWorkerOptions(speculation=speculation, **given)) as url,
        connected(url) as connected_clients,
    ):
        yield connected_clients


def recording(seconds: int) -> tuple[str, bytes]:
    """A WAV file of so many seconds, with its name."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(1)
        writer.setframerate(800)
        writer.writeframes(bytes(range(200)) * 4 * seconds)
    return "speech.wav", file.getvalue()


def check_weather(arguments: dict[str, Any]) -> None:
    """The arguments of a call are what the schema asks for."""
    assert arguments.keys() == {"city", "days", "unit"}
    assert isinstance(arguments["city"], str)
    assert arguments["days"] >= 2
    assert arguments["unit"] in ("celsius", "fahrenheit")

"""Answers of simulated workers, as bytes on the wire, replayed: what they counted comes out."""

from __future__ import annotations

from typing import Any

import httpx
import orjson
import pytest

from paceline.core.acceptance import SpeculationReport
from paceline.core.correction import observed_tokens_per_pass
from paceline.core.dialects import said_by
from paceline.core.output_text import output_text
from paceline.core.replayable import Replayable, Replayed, study
from paceline.core.types import Endpoint, Speculation, Workload
from paceline.sim.library import passages
from paceline.testing.sim_worker import SimWorkerOptions, running_sim_worker

NGRAM = Speculation(
    method="ngram",
    num_speculative_tokens=5,
    options={"prompt_lookup_min": 2, "prompt_lookup_max": 4},
)
PROGRAM = passages(Workload.CODE)[0].body
EDIT = f"Rename first_true to earliest and return the whole file.\n\n{PROGRAM}"
CHAT = "Tell me about rivers."
TOKENS = {"max_tokens": 400}


def asking(endpoint: Endpoint, text: str) -> tuple[str, dict[str, Any]]:
    said = [{"role": "user", "content": text}]
    match endpoint:
        case Endpoint.CHAT_COMPLETIONS:
            return "/v1/chat/completions", {"messages": said, **TOKENS}
        case Endpoint.COMPLETIONS:
            return "/v1/completions", {"prompt": text, **TOKENS}
        case Endpoint.RESPONSES:
            return "/v1/responses", {"input": text, "max_output_tokens": 400}
    return "/v1/messages", {"messages": said, **TOKENS}


async def answered(
    http: httpx.AsyncClient, endpoint: Endpoint, text: str, *, is_stream: bool
) -> Replayable:
    path, body = asking(endpoint, text)
    request = orjson.dumps({"model": "m", "stream": is_stream, **body})
    response = await http.post(path, content=request, headers={"content-type": "application/json"})
    assert response.status_code == 200
    return Replayable(
        endpoint=endpoint,
        request=request,
        answer=response.content,
        is_stream=is_stream,
        lookups={"ngram": NGRAM},
    )


@pytest.mark.parametrize(
    "endpoint",
    [
        *(Endpoint.CHAT_COMPLETIONS, Endpoint.COMPLETIONS),
        *(Endpoint.RESPONSES, Endpoint.MESSAGES),
    ],
)
async def test_every_familys_answers_are_read_whole_and_streamed(endpoint: Endpoint):
    options = SimWorkerOptions(model="m", step_s=0.0, speculation=NGRAM)
    async with (
        running_sim_worker(options) as url,
        httpx.AsyncClient(base_url=url, timeout=20, verify=False) as http,
    ):
        streamed = await answered(http, endpoint, EDIT, is_stream=True)
        whole = await answered(http, endpoint, EDIT, is_stream=False)
    text = output_text(endpoint, whole.answer, is_stream=False)
    assert text is not None
    assert len(text) > 300
    assert output_text(endpoint, streamed.answer, is_stream=True) == text
    assert study(streamed) == study(whole)


async def test_a_replay_tells_what_a_worker_counted():
    """To within what word tokens and the simulated worker's differ by: white space, above all."""
    options = SimWorkerOptions(model="m", step_s=0.0, speculation=NGRAM)
    async with (
        running_sim_worker(options) as url,
        httpx.AsyncClient(base_url=url, timeout=20, verify=False) as http,
    ):
        edit = await answered(http, Endpoint.CHAT_COMPLETIONS, EDIT, is_stream=False)
        chat = await answered(http, Endpoint.CHAT_COMPLETIONS, CHAT, is_stream=False)
    for exchange, is_copied in ((edit, True), (chat, False)):
        replayed, (num_tokens, report) = study(exchange), counted(exchange)
        assert replayed is not None
        assert replayed.is_whole
        assert ((replayed.copy_ratio or 0.0) > 0.6) is is_copied
        observed = observed_tokens_per_pass(num_tokens, report)
        assert observed is not None
        assert per_pass(replayed) == pytest.approx(observed, rel=0.3)
        assert (per_pass(replayed) > 2.0) is (observed > 2.0) is is_copied


def counted(exchange: Replayable) -> tuple[int, SpeculationReport]:
    said = said_by(orjson.loads(exchange.answer))
    assert said.num_output_tokens is not None
    assert said.report is not None
    return said.num_output_tokens, said.report


def per_pass(replayed: Replayed) -> float:
    tokens_per_pass = replayed.lookups["ngram"].tokens_per_pass
    assert tokens_per_pass is not None
    return tokens_per_pass

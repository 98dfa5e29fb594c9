"""Embeddings, transcriptions and models through the gateway with OpenAI's Python client."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from official import MODEL, Clients, recording
from through import alike, through


async def test_embeddings_are_decoded_and_the_workers_own():
    texts = ["The river runs.", "Bread rises."]
    async with through() as it:
        # Its own default: the client asks for base64 and decodes it.
        ours = await it.openai.embeddings.create(model="m", input=texts)
        floats = await it.openai.embeddings.create(
            model="alias", input=texts, encoding_format="float"
        )
        direct = await it.plain.openai.embeddings.create(model=MODEL, input=texts)
    assert alike(ours) == alike(direct)
    for item, same in zip(ours.data, floats.data, strict=True):
        assert item.embedding == pytest.approx(same.embedding, abs=1e-6)
        assert len(item.embedding) > 8


async def transcribed(it: Clients, model: str) -> tuple[Any, str]:
    """A recording's transcript, whole and put together from a stream."""
    create = it.openai.audio.transcriptions.create
    whole = await create(model=model, file=recording(9), language="en")
    stream: Any = await create(model=model, file=recording(9), language="en", stream=True)
    # vLLM streams transcripts as chunks of chat, which the client hands over as they are.
    deltas = [choice["delta"] for chunk in [c async for c in stream] for choice in chunk.choices]
    return whole, "".join(delta.get("content") or "" for delta in deltas)


async def test_a_recording_is_uploaded_and_transcribed():
    async with through() as it:
        ours, streamed = await transcribed(it, "alias")
        direct, direct_streamed = await transcribed(it.plain, MODEL)
        with pytest.raises(openai.NotFoundError, match="no model 'nope'"):
            await transcribed(it, "nope")
    assert alike(ours) == alike(direct)
    assert streamed == direct_streamed
    assert streamed.strip() == ours.text.strip() != ""


async def test_models_are_listed_under_the_gateways_names():
    async with through() as it:
        listed = [model.id async for model in it.openai.models.list()]
        one = await it.openai.models.retrieve("alias")
        (card,) = [model async for model in it.plain.openai.models.list()]
    assert listed == ["m", "alias"]
    assert (one.id, one.owned_by) == ("alias", "paceline")
    assert one.model_extra["max_model_len"] == card.model_extra["max_model_len"]

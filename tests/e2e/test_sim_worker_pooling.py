"""The simulated worker's embeddings, scores, tokens and transcripts, with OpenAI's client."""

from __future__ import annotations

import json
import math
from typing import Any

import httpx
import openai
import pytest

from official import MODEL, Clients, clients, recording

# --- embeddings and scores ------------------------------------------------------------------------


async def test_embeddings_are_the_same_as_numbers_and_as_base64():
    async with clients() as it:
        texts = ["The river runs.", "Bread rises."]
        # Its own default: the client asks for base64 and decodes it.
        decoded = await it.openai.embeddings.create(model=MODEL, input=texts)
        body = {"model": MODEL, "input": texts, "encoding_format": "float"}
        plain = (await it.http.post("/v1/embeddings", json=body)).json()
        raw = (
            await it.http.post("/v1/embeddings", json={**body, "encoding_format": "base64"})
        ).json()
    assert [item.index for item in decoded.data] == [0, 1]
    for item, same in zip(decoded.data, plain["data"], strict=True):
        assert item.embedding == pytest.approx(same["embedding"], abs=1e-6)
        assert math.hypot(*same["embedding"]) == pytest.approx(1)
    assert all(isinstance(item["embedding"], str) for item in raw["data"])
    assert decoded.data[0].embedding != decoded.data[1].embedding
    assert decoded.usage.prompt_tokens == decoded.usage.total_tokens > 4
    assert plain["id"].startswith("embd-")


async def test_texts_that_share_words_are_near():
    async with clients() as it:
        pairs = {"text_1": "the river", "text_2": ["the river", "river banks", "fresh bread"]}
        score = (await it.http.post("/v1/score", json={"model": MODEL, **pairs})).json()
        pooled = await it.openai.embeddings.create(model=MODEL, input=["the river", "river banks"])
        one, other = (item.embedding for item in pooled.data)
    same, related, unrelated = (item["score"] for item in score["data"])
    assert same == pytest.approx(1)
    assert same > related > unrelated
    assert related == pytest.approx(sum(a * b for a, b in zip(one, other, strict=True)), abs=1e-5)
    assert score["usage"]["completion_tokens"] == 0


async def test_scores_pair_many_with_many():
    async with clients() as it:
        body = {"queries": ["a river", "bread"], "documents": ["bread", "bread"]}
        first, second = (await it.http.post("/score", json=body)).json()["data"]
    assert first["score"] < second["score"] == pytest.approx(1)


@pytest.mark.parametrize("path", ["/v1/rerank", "/rerank", "/v2/rerank"])
async def test_reranking_puts_the_nearest_first(path: str):
    documents = ["fresh bread", "a river bank", "the river runs to the sea"]
    async with clients() as it:
        body = {"model": MODEL, "query": "the river runs", "documents": documents, "top_n": 2}
        ranked = (await it.http.post(path, json=body)).json()
    assert [result["index"] for result in ranked["results"]] == [2, 1]
    assert ranked["results"][0]["document"] == {"text": documents[2], "multi_modal": None}
    assert ranked["usage"]["prompt_tokens"] == ranked["usage"]["total_tokens"]


async def test_vectors_take_the_time_of_their_prompt_and_write_nothing():
    async with clients(None, step_s=0.05) as it:
        response = await it.http.post("/v1/embeddings", json={"input": "one two three"})
        assert response.elapsed.total_seconds() >= 0.05
        assert await it.metric("prompt_tokens_total") == 3
        assert await it.metric("generation_tokens_total") == 0
        assert await it.metric("num_requests_running") == 0


async def test_faults_and_limits_meet_embeddings_too():
    async with clients() as it:
        await it.set_faults({"kind": "error", "count": 1})
        with pytest.raises(openai.InternalServerError):
            await it.openai.embeddings.create(model=MODEL, input="x")
        await it.set_faults({"kind": "die", "count": 1})
        with pytest.raises(httpx.RemoteProtocolError):
            await it.http.post("/v1/embeddings", json={"input": "x"})
        await it.set_faults({"kind": "saturated"})
        assert (await it.http.post("/v1/embeddings", json={"input": "x"})).status_code == 503


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        (
            "/v1/embeddings",
            {"model": "nope", "input": "x"},
            404,
            "The model `nope` does not exist.",
        ),
        ("/v1/embeddings", {"input": []}, 400, "You must pass at least one prompt"),
        ("/v1/embeddings", {"input": ""}, 400, "The decoder prompt cannot be empty"),
        (
            "/v1/embeddings",
            {"input": "x", "dimensions": 16},
            400,
            "Model 'smollm2' does not support Matryoshka embeddings; dimensions must be unset "
            "(received dimensions=16).",
        ),
        ("/rerank", {"model": "nope", "query": "x", "documents": ["y"]}, 404, None),
        (
            "/rerank",
            {"query": "x", "documents": []},
            400,
            "At least one text_pair element must be given",
        ),
        (
            "/score",
            {"text_1": ["a", "b"], "text_2": ["c", "d", "e"]},
            400,
            "Input lengths must be either 1:1, 1:N or N:N",
        ),
        ("/v1/embeddings", {}, 400, None),
        ("/v1/embeddings", {"input": 3}, 400, None),
        ("/v1/embeddings", {"input": "x", "encoding_format": "y"}, 400, None),
        ("/v1/embeddings", {"input": "word " * 3000}, 400, None),
        ("/v1/embeddings", {"input": ["x"] * 3000}, 400, None),
        ("/score", {}, 400, None),
        ("/score", {"text_1": [], "text_2": []}, 400, None),
        ("/rerank", {"query": 3, "documents": ["x"]}, 400, None),
        ("/tokenize", {"model": "nope", "prompt": "x"}, 404, None),
        ("/tokenize", {"prompt": 3}, 400, None),
        ("/tokenize", {}, 400, None),
        ("/detokenize", {"tokens": ["x"]}, 400, None),
        ("/detokenize", {"tokens": 3}, 400, None),
    ],
)
async def test_refusals_are_vllms(path: str, body: Any, status: int, message: str | None):
    async with clients() as it:
        response = await it.http.post(path, json=body)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (status, status)
    assert message is None or error["message"] == message


# --- tokens ---------------------------------------------------------------------------------------


async def test_text_comes_back_from_its_tokens():
    text = "Rivers: 漢字, naïve words\n\n    and indentation."
    async with clients() as it:
        body = {"model": MODEL, "prompt": text, "return_token_strs": True}
        tokens = (await it.http.post("/tokenize", json=body)).json()
        back = await it.http.post("/detokenize", json={"tokens": tokens["tokens"]})
        unknown = await it.http.post("/detokenize", json={"tokens": [9999999]})
    assert back.json() == {"prompt": text}
    assert "".join(tokens["token_strs"]) == text
    assert tokens["count"] == len(tokens["tokens"])
    assert tokens["max_model_len"] == 2048
    assert unknown.json() == {"prompt": ""}


async def test_the_ids_of_an_answer_can_be_read():
    async with clients() as it:
        ask = {"messages": [{"role": "user", "content": "hi"}], "return_token_ids": True}
        answer = (await it.http.post("/v1/chat/completions", json=ask)).json()
        ids = answer["choices"][0]["token_ids"]
        back = (await it.http.post("/detokenize", json={"tokens": ids})).json()["prompt"]
        chat = (await it.http.post("/tokenize", json={"messages": ask["messages"]})).json()
    assert back == answer["choices"][0]["message"]["content"] + "<|im_end|>"
    assert chat["count"] == answer["usage"]["prompt_tokens"]


# --- transcripts ----------------------------------------------------------------------------------


async def test_a_recording_is_transcribed_by_its_length():
    async with clients() as it:
        short = await it.openai.audio.transcriptions.create(model=MODEL, file=recording(3))
        again = await it.openai.audio.transcriptions.create(
            model=MODEL, file=recording(3), language="en", temperature=0.0
        )
        long = await it.openai.audio.transcriptions.create(model=MODEL, file=recording(20))
        as_text = await it.http.post(
            "/v1/audio/transcriptions",
            files={"file": recording(3)},
            data={"model": MODEL, "response_format": "text"},
        )
    assert short.text == again.text
    assert short.usage.seconds == 3
    assert len(long.text) > 4 * len(short.text) > 40
    assert as_text.json()["text"] == short.text  # vLLM answers `text` with JSON too


async def test_a_transcript_is_streamed_in_chunks():
    async with clients() as it:
        whole = await it.openai.audio.transcriptions.create(model=MODEL, file=recording(10))
        *chunks, usage = await chunks_of(it, stream_include_usage="true")
    assert {chunk["object"] for chunk in chunks} == {"transcription.chunk"}
    assert chunks[0]["id"].startswith("transcribe-")
    deltas = [chunk["choices"][0]["delta"]["content"] for chunk in chunks]
    assert len(deltas) > 3
    assert "".join(deltas) == whole.text
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert usage["choices"] == []
    assert usage["usage"]["prompt_tokens"] > 1000  # 100 a second, as Whisper's spectrogram has
    assert usage["usage"]["completion_tokens"] >= len(deltas)


async def test_the_official_client_reads_streamed_transcripts():
    async with clients() as it:
        stream = await it.openai.audio.transcriptions.create(
            model=MODEL, file=recording(10), stream=True
        )
        chunks = [chunk async for chunk in stream]
    assert len(chunks) > 3


async def chunks_of(it: Clients, **more: str) -> list[Any]:
    files, data = {"file": recording(10)}, {"model": MODEL, "stream": "true", **more}
    response = await it.http.post("/v1/audio/transcriptions", files=files, data=data)
    assert response.headers["content-type"].startswith("text/event-stream")
    *blocks, done = response.text.split("\n\n")[:-1]
    assert done == "data: [DONE]"
    return [json.loads(block.removeprefix("data: ")) for block in blocks]


async def test_an_error_within_a_streamed_transcript_is_an_event():
    async with clients() as it:
        await it.set_faults({"kind": "error_event", "at_token": 4, "status": 500})
        *_, last = await chunks_of(it)
    assert last["error"]["code"] == 500


@pytest.mark.parametrize(
    ("data", "status", "message"),
    [
        ({"model": "nope"}, 404, "The model `nope` does not exist. Valid aliases: smollm2."),
        (
            {"response_format": "srt"},
            400,
            "Currently only support response_format: `text`, `json`, `verbose_json` or "
            "`diarized_json`",
        ),
        (
            {"response_format": "verbose_json"},
            400,
            "Currently do not support verbose_json for smollm2",
        ),
        (
            {"stream_include_usage": "true"},
            400,
            "Stream options can only be defined when `stream=True`. "
            "(parameter=stream_include_usage)",
        ),
        ({"stream": "maybe"}, 400, None),
        ({"seed": "x"}, 400, None),
    ],
)
async def test_refusals_of_transcripts_are_vllms(data: Any, status: int, message: str | None):
    async with clients() as it:
        files = {"file": recording(1)}
        response = await it.http.post("/v1/audio/transcriptions", files=files, data=data)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (status, status)
    assert message is None or error["message"] == message


@pytest.mark.parametrize(
    ("content_type", "body", "status"),
    [
        ("application/json", b"{}", 400),
        ("multipart/form-data", b"x", 400),
        ("multipart/form-data; boundary=b", b"nonsense", 400),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nhi\r\n--b--\r\n',
            422,
        ),
    ],
)
async def test_forms_that_cannot_be_read_are_refused(content_type: str, body: bytes, status: int):
    async with clients() as it:
        response = await it.http.post(
            "/v1/audio/transcriptions", content=body, headers={"content-type": content_type}
        )
    assert (response.status_code, response.json()["error"]["code"]) == (status, status)

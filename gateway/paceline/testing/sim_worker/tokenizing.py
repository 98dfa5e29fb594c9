"""`/tokenize` and `/detokenize`: the simulated model's tokens are words (`paceline.sim.words`)."""

from __future__ import annotations

from typing import Any

from paceline.sim.words import tokenize
from paceline.testing.sim_worker.fields import Body, flag, require
from paceline.testing.sim_worker.options import SimWorkerOptions
from paceline.testing.sim_worker.prompts import chat_prompt
from paceline.testing.sim_worker.refusals import bad_shape
from paceline.testing.sim_worker.requests import check_model
from paceline.testing.sim_worker.vocabulary import Vocabulary


def tokenized(body: Body, options: SimWorkerOptions, vocabulary: Vocabulary) -> dict[str, Any]:
    """The tokens of `prompt`, or of `messages` in the chat template. Raises Refusal."""
    if body.get("messages") is not None:
        tokens = list(chat_prompt(body["messages"]).tokens)
    else:
        require(body, "prompt")
        if not isinstance(prompt := body["prompt"], str):
            text = "Input should be a valid string"
            raise bad_shape("string_type", "body.prompt", text, prompt)
        tokens = tokenize(prompt.encode("utf-8", "replace").decode())
    check_model(body, options)
    return {
        "count": len(tokens),
        "max_model_len": options.max_model_len,
        "tokens": vocabulary.ids(tokens),
        "token_strs": tokens if flag(body, "return_token_strs") else None,
    }


def detokenized(body: Body, options: SimWorkerOptions, vocabulary: Vocabulary) -> dict[str, Any]:
    """The text of `tokens`; ids that this worker never told of have none. Raises Refusal."""
    require(body, "tokens")
    ids = body["tokens"]
    if not isinstance(ids, list):
        raise bad_shape("list_type", "body.tokens", "Input should be a valid list", ids)
    for i, number in enumerate(ids):
        if isinstance(number, bool) or not isinstance(number, int):
            text = "Input should be a valid integer"
            raise bad_shape("int_type", f"body.tokens.{i}", text, number)
    check_model(body, options)
    return {"prompt": vocabulary.text(ids)}

"""Request body → `RequestView`: each endpoint's body in the one shape that decisions read.

Never fails: what is not understood is left out, since the worker is the judge of a body, not we.
Here are the bodies of completions, and those that say nothing of what will be generated;
`views_chat`, `views_responses` and `views_messages` read the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from paceline.core.compiled import chat_view
from paceline.core.fields import number, sequence, string, text_of
from paceline.core.types import Endpoint, RequestView, Turn
from paceline.core.views_chat import max_tokens, seldom_said
from paceline.core.views_messages import messages_view
from paceline.core.views_responses import responses_view


def view_of(endpoint: Endpoint, body: Mapping[str, Any]) -> RequestView:
    """What a body says, in the shape that all endpoints share. Wrong types read as absent."""
    return _READERS.get(endpoint, _textless_view)(endpoint, body)


def _completion_view(endpoint: Endpoint, body: Mapping[str, Any]) -> RequestView:
    said = seldom_said(body)
    text = text_of(body.get("prompt"))
    num_choices = said["n"] * _num_prompts(body.get("prompt"))
    return RequestView(
        endpoint=endpoint,
        model=string(body.get("model")),
        stream=body.get("stream") is True,
        turns=(Turn(role="user", text=text),) if text else (),
        suffix=string(body.get("suffix")),
        max_tokens=max_tokens(body),
        temperature=number(body.get("temperature")),
        has_text=bool(text),
        **said | {"num_choices": num_choices},
    )


def _textless_view(endpoint: Endpoint, body: Mapping[str, Any]) -> RequestView:
    """Of embeddings, scores and token counts, which generate nothing, and of transcriptions, whose
    text no prompt foretells: no text to judge by, and so the default pool."""
    return RequestView(
        endpoint=endpoint,
        model=string(body.get("model")),
        stream=body.get("stream") is True,
        has_text=False,
    )


_READERS: Mapping[Endpoint, Callable[[Endpoint, Mapping[str, Any]], RequestView]] = {
    Endpoint.CHAT_COMPLETIONS: chat_view,
    Endpoint.COMPLETIONS: _completion_view,
    Endpoint.RESPONSES: responses_view,
    Endpoint.MESSAGES: messages_view,
}


def _num_prompts(prompt: Any) -> int:
    """Of a list of texts or of token lists, as many as there are; else one."""
    is_batch = bool(sequence(prompt)) and isinstance(prompt[0], (str, list))
    return len(prompt) if is_batch else 1

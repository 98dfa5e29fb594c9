"""Bodies read with trust in nothing, and a bounded look at what they say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from paceline.core.classify import classify
from paceline.core.compiled import look
from paceline.core.features import (
    EARLIER_HEAD_CHARS,
    EARLIER_TAIL_CHARS,
    MAX_EARLIER,
    measure,
)
from paceline.core.material import ASK_CHARS, LOOK_CHARS
from paceline.core.signals import EARLIER_CHARS, SYSTEM_MARK_CHARS
from paceline.core.types import Endpoint, Material, RequestFeatures, RequestView, Turn
from paceline.core.views import view_of

PYTHON = "def mean(values):\n    total = sum(values)\n    return total / len(values)"
FENCED = f"```python\n{PYTHON}\n```"


def chat_view(*messages: Any, **rest: Any) -> RequestView:
    return view_of(Endpoint.CHAT_COMPLETIONS, {"model": "m", "messages": list(messages), **rest})


def completion_view(prompt: Any, **rest: Any) -> RequestView:
    return view_of(Endpoint.COMPLETIONS, {"model": "m", "prompt": prompt, **rest})


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def asked(text: str) -> RequestFeatures:
    return measure(chat_view(user(text)))


def ask_of(text: str) -> str:
    """The caller's own words, as the signals are read from them."""
    before, after, _, _ = look(text, True)
    return f"{before}\n{after}" if after else before


# ---- what a body says ----------------------------------------------------------------------------


def test_a_chat_body_is_read() -> None:
    view = chat_view(
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": "Be kind."},
        user("hi"),
        {"role": "assistant", "content": "Hello!"},
        user("bye"),
        stream=True,
        max_tokens=10,
        temperature=1,
        n=2,
        logprobs=True,
        min_p=0.1,
        logit_bias={"1": 2},
        tools=[{}, {}],
        tool_choice="required",
        response_format={"type": "json_schema", "json_schema": {}},
        prediction={"type": "content", "content": "so it goes"},
    )
    assert view == RequestView(
        endpoint=Endpoint.CHAT_COMPLETIONS,
        model="m",
        stream=True,
        system="Be brief.\nBe kind.",
        turns=(
            Turn(role="user", text="hi"),
            Turn(role="assistant", text="Hello!"),
            Turn(role="user", text="bye"),
        ),
        prediction="so it goes",
        num_tools=2,
        tool_choice_forced=True,
        response_format="json_schema",
        max_tokens=10,
        temperature=1.0,
        n=2,
        num_choices=2,
        logprobs=True,
        min_p=True,
        logit_bias=True,
    )


@pytest.mark.parametrize(
    ("prompt", "turns"),
    [
        ("Once", (Turn(role="user", text="Once"),)),
        (["Once", "Twice"], (Turn(role="user", text="Once\nTwice"),)),
        ("", ()),
        ([], ()),
        ([1, 2, 3], ()),
        ([[1, 2], [3]], ()),
        (None, ()),
    ],
)
def test_a_completion_prompt_is_read_unless_it_is_token_ids(prompt: Any, turns: tuple) -> None:
    view = completion_view(prompt, suffix="end")
    assert (view.turns, view.suffix, view.has_text) == (turns, "end", bool(turns))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "fix"}, {"type": "image_url", "image_url": {}}], "fix"),
        ([{"type": "input_text", "text": "fix"}, {"type": "new", "text": "this"}], "fix\nthis"),
        (["fix", {"text": "this"}], "fix\nthis"),
        ([{"type": "image_url", "image_url": {"url": "data:,"}}], ""),
        ([{"type": "text"}, {"type": "text", "text": None}, 7, None, []], ""),
        ([], ""),
        (None, ""),
        (7, ""),
        ({"text": "not a list"}, ""),
    ],
)
def test_text_is_read_from_parts_of_any_kind(content: Any, text: str) -> None:
    """Unknown parts are passed over, and no text is no failure."""
    view = chat_view(user(content))
    assert view.turns == (Turn(role="user", text=text),)
    assert view.has_text == bool(text)


def test_messages_in_every_shape_of_the_protocol_are_read() -> None:
    """Calls without content, results as parts, tools without parameters."""
    call = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    view = chat_view(
        user("What time is it?"),
        {"role": "assistant", "tool_calls": [call]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "noon"}]},
        tools=[{"type": "function", "function": {"name": "now"}}],
        chat_template_kwargs={"enable_thinking": False},
    )
    assert [turn.text for turn in view.turns] == ["What time is it?", "", "", "noon"]
    features = measure(view)
    assert features.signals >= {"tools", "tool-result"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"max_tokens": 5}, 5),
        ({"max_completion_tokens": 7}, 7),
        ({"max_completion_tokens": 7, "max_tokens": 5}, 7),
        ({"max_completion_tokens": None, "max_tokens": 5}, 5),
        ({"max_tokens": "5"}, None),
        ({"max_tokens": True}, None),
        ({"max_tokens": 5.5}, None),
        ({}, None),
    ],
)
def test_max_tokens(body: dict, expected: int | None) -> None:
    assert chat_view(**body).max_tokens == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, None),
        ({"response_format": None}, None),
        ({"response_format": {"type": "text"}}, None),
        ({"response_format": {"type": "json_object"}}, "json_object"),
        ({"response_format": {"type": "json_schema"}}, "json_schema"),
        ({"response_format": {"type": 7}}, None),
        ({"response_format": "json_object"}, None),
        ({"structured_outputs": {"regex": "[a-z]+"}}, "grammar"),
        ({"structured_outputs": None}, None),
    ],
)
def test_response_format(body: dict, expected: str | None) -> None:
    assert chat_view(**body).response_format == expected


@pytest.mark.parametrize("value", [False, None, "true", 1, [], {}])
def test_only_true_streams(value: Any) -> None:
    assert chat_view(stream=value).stream is False
    assert chat_view(stream=True).stream is True


known_names = [
    "model", "stream", "messages", "prompt", "suffix", "role", "content", "type", "text",
    "tools", "tool_choice", "response_format", "structured_outputs", "max_tokens",
    "max_completion_tokens", "temperature", "n", "logprobs", "min_p", "logit_bias", "prediction",
    "prompt_cache_key",
]  # fmt: skip
keys = st.sampled_from(known_names) | st.text(max_size=3)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["user", "system", "tool", "json_schema", "required", "```", "a\n\nb: c"])
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
bodies = st.dictionaries(keys, values, max_size=8)


@given(body=bodies, endpoint=st.sampled_from(Endpoint))
@settings(deadline=None, max_examples=60)
def test_no_body_makes_reading_fail(body: dict[str, Any], endpoint: Endpoint) -> None:
    classify(measure(view_of(endpoint, body)))


@given(messages=st.lists(st.dictionaries(keys, values, max_size=4), max_size=4))
@settings(deadline=None, max_examples=60)
def test_no_messages_make_reading_fail(messages: list) -> None:
    view = chat_view(*messages)
    assert len(view.turns) <= len(messages)
    assert classify(measure(view)).reasons or view.has_text


# ---- a bounded look ------------------------------------------------------------------------------


def besides_sizes(features: RequestFeatures) -> RequestFeatures:
    """What was measured, without the text itself and the sizes of it."""
    nothing = RequestView(endpoint=Endpoint.CHAT_COMPLETIONS, model="", stream=False)
    return replace(features, view=nothing, prompt_chars=0, material_chars=0)


MIDDLES = (
    "fix the bug " * 10_000,
    "```python\ndef f():\n    return 1\n```\n" * 3_000,
    "\n\n" * 50_000,
    "x" * 100_000,
    "<<<<<<< SEARCH\n" * 7_000,
)


@pytest.mark.parametrize("middle", MIDDLES, ids=lambda middle: repr(middle[:12]))
def test_the_middle_of_a_long_turn_is_not_read(middle: str) -> None:
    head = "Summarize this report.\n\n" + "The harbour was dredged again. " * 200
    tail = "In the end the ferry came back. " * 200
    filler = "The town grew. " * 70_000
    plain, odd = asked(head + filler + tail), asked(head + middle + tail)
    assert besides_sizes(plain) == besides_sizes(odd)
    assert plain.prompt_chars - odd.prompt_chars == len(filler) - len(middle)
    assert plain.material_chars - odd.material_chars == len(filler) - len(middle)


@pytest.mark.parametrize("middle", MIDDLES, ids=lambda middle: repr(middle[:12]))
def test_the_middle_of_system_text_and_earlier_turns_is_not_read(middle: str) -> None:
    def conversation(filler: str) -> RequestFeatures:
        opening, ending = "You are a careful assistant. " * 100, "It is a small town. " * 100
        return measure(
            chat_view(
                {"role": "system", "content": opening + filler + ending},
                user("Tell me about the town." * 100 + filler + ending),
                {"role": "assistant", "content": "It lies by the sea. " * 200 + filler + ending},
                user("And the ferry?"),
            )
        )

    plain, odd = conversation("The town grew. " * 7_000), conversation(middle)
    assert besides_sizes(plain) == besides_sizes(odd)


@given(text=st.text(max_size=300), times=st.integers(1, 60))
@example(text="```", times=1)
def test_the_callers_words_are_bounded(text: str, times: int) -> None:
    features = asked(text * times)
    assert len(ask_of(text * times)) <= 2 * ASK_CHARS + 1
    assert features.prompt_chars == len(text * times)
    assert 0 <= features.material_chars <= features.prompt_chars


def test_no_more_than_8_kib_is_read() -> None:
    earlier = MAX_EARLIER * (EARLIER_HEAD_CHARS + EARLIER_TAIL_CHARS) + 2 * EARLIER_CHARS
    assert LOOK_CHARS + SYSTEM_MARK_CHARS + earlier <= 8192


@pytest.mark.parametrize("space", ["\u3000", "\x0b", "\x1c", "\xa0", "\u2028"])
def test_lines_of_odd_white_space_are_no_words(space: str) -> None:
    assert asked(f"{space}\n{PYTHON}\n{space}").material is Material.CODE
    assert ask_of(f"Fix it.\n{space}\n{PYTHON}").strip() == "Fix it."


def test_both_ends_of_a_long_turn_are_read() -> None:
    filler = "The town grew and the harbour with it. " * 1000
    assert len(filler) > 2 * LOOK_CHARS
    first = "Proofread the following text.\n\n" + filler
    last = filler + "\n\nProofread the text above."
    for text in (first, last):
        features = asked(text)
        assert "Proofread" in ask_of(text)
        assert "asks:grammar" in features.signals
        assert features.material is Material.TEXT
        assert features.material_chars >= len(filler) - 2


# ---- the caller's words and the material ---------------------------------------------------------

LETTER = "We was very glad to hears from you after all this years apart. " * 8


@pytest.mark.parametrize(
    ("text", "ask", "material"),
    [
        ("Write a poem.", "Write a poem.", Material.NONE),
        (f"Fix this:\n\n{FENCED}", "Fix this:", Material.CODE),
        (f"{FENCED}\nWhy does it fail?", "Why does it fail?", Material.CODE),
        (f"Fix this function.\n\n{PYTHON}", "Fix this function.", Material.CODE),
        (f"{PYTHON}\n\nFix this function.", "Fix this function.", Material.CODE),
        (f"Correct the grammar.\n\n{LETTER}", "Correct the grammar.", Material.TEXT),
        (f"{LETTER}\n\nCorrect the grammar.", "Correct the grammar.", Material.TEXT),
        (f"Correct the grammar: {LETTER}", "Correct the grammar", Material.TEXT),
        (f"Correct the grammar\n{LETTER}", "Correct the grammar", Material.TEXT),
        (f"{LETTER}\nWho wrote this?", "Who wrote this?", Material.TEXT),
        ("Correct the grammar: He go to school every days.", "Correct the grammar",
         Material.SENTENCE),
        (f"<code>\n{PYTHON}\n</code>\n<request>Rename it.</request>",
         "<request>Rename it.</request>", Material.CODE),
        (f"Here is my letter.\n\n{LETTER}\n\nCorrect the grammar.",
         "Here is my letter.\nCorrect the grammar.", Material.TEXT),
        (PYTHON, "", Material.CODE),
    ],
)  # fmt: skip
def test_the_callers_words_are_told_from_the_material(
    text: str, ask: str, material: Material
) -> None:
    assert ask_of(text).strip("\n") == ask
    assert asked(text).material is material


def test_line_ends_do_not_matter() -> None:
    text = f"Fix this function.\n\n{PYTHON}"
    other = text.replace("\n", "\r\n")
    here, there = asked(text), asked(other)
    assert (here.material, here.signals) == (there.material, there.signals)
    assert ask_of(text) == ask_of(other)


CALL = {"role": "assistant", "content": None, "tool_calls": []}


@pytest.mark.parametrize(
    ("messages", "material"),
    [
        ([{"role": "assistant", "content": FENCED}], Material.ANSWERED_CODE),
        ([{"role": "assistant", "content": LETTER}], Material.ANSWERED_TEXT),
        ([user(f"a.py\n{FENCED}"), {"role": "assistant", "content": "Ok."}], Material.EARLIER_CODE),
        ([user(LETTER), {"role": "assistant", "content": "Ok."}], Material.EARLIER_TEXT),
        ([user(f"a.py\n{FENCED}"), {"role": "assistant", "content": FENCED * 2}],
         Material.ANSWERED_CODE),
        ([user("hi"), {"role": "assistant", "content": "Hello!"}], Material.NONE),
    ],
)  # fmt: skip
def test_earlier_turns_give_material(messages: list, material: Material) -> None:
    assert measure(chat_view(*messages, user("and now?"))).material is material


def test_a_tools_result_is_material() -> None:
    view = chat_view(user("Fix it."), CALL, {"role": "tool", "content": PYTHON})
    features = measure(view)
    assert (features.material, features.material_chars) == (Material.TOOL_RESULT, len(PYTHON))


# ---- signals -------------------------------------------------------------------------------------

SIGNALS = {
    "asks:rename": chat_view(user("Rename it.")),
    "asks:add": chat_view(user("Please add a line")),
    "asks:create": chat_view(user("Please write something")),
    "asks:explain": chat_view(user("Could you explain that")),
    "asks:extract": chat_view(user("Repeat it")),
    "asks:question": chat_view(user("Why is it so")),
    "code-in-ask": chat_view(user("What is `len`")),
    "diff": chat_view(user("Explain\n\n```\n--- a/x\n+++ b/x\n```")),
    "earlier:change": chat_view(user("fix it"), {"role": "assistant", "content": "b"}, user("c")),
    "earlier:create": chat_view(user("write it"), {"role": "assistant", "content": "b"}, user("c")),
    "earlier:question": chat_view(user("why"), {"role": "assistant", "content": "b"}, user("c")),
    "ends-in-question": chat_view(user("Really?")),
    "fill-in-the-middle": completion_view("def f(", suffix="return 1"),
    "first:create": chat_view(user("Write it")),
    "follow-up": chat_view(user("a"), {"role": "assistant", "content": "b"}, user("c")),
    "mentions:code-noun": chat_view(user("a function")),
    "mentions:fix": chat_view(user("there are seven or eight or nine typos in it")),
    "mentions:language": chat_view(user("in Python")),
    "mentions:prose": chat_view(user("a poem")),
    "mentions:whole": chat_view(user("Return the full file.")),
    "new-file": chat_view(user("Put it in a new file")),
    "no-ask": chat_view(user(PYTHON)),
    "no-spaces": chat_view(user("为什么天空是蓝色的")),
    "not-latin": chat_view(user("Почему")),
    "patch-format": chat_view({"role": "system", "content": "<<<<<<< SEARCH"}, user("go")),
    "prediction": chat_view(user("go"), prediction={"type": "content", "content": "a"}),
    "read-only": chat_view(user("Context (read only): a")),
    "second:create": chat_view(user("Please write it")),
    "short-answer": chat_view(user("go"), max_tokens=8),
    "structured-output": chat_view(user("go"), response_format={"type": "json_object"}),
    "system:grammar": chat_view({"role": "system", "content": "Proofread it"}, user("go")),
    "to-language": chat_view(user("and in Go")),
    "tool-result": chat_view(user("go"), {"role": "tool", "content": "noon"}),
    "tools": chat_view(user("go"), tools=[{}]),
    "unfinished-code": chat_view(user("function add(a, b) {\n  const c = a;\n  if (c) {\n")),
}


@pytest.mark.parametrize("signal", SIGNALS)
def test_signal_is_seen_and_weighed(signal: str) -> None:
    features = measure(SIGNALS[signal])
    assert signal in features.signals
    classify(features)


@pytest.mark.parametrize(
    ("text", "concept"),
    [
        ("Korrigiere den Text", "fix"),
        ("Corrige el texto", "fix"),
        ("Corrigez le texte", "fix"),
        ("Исправьте текст", "fix"),
        ("Виправте текст", "fix"),
        ("Popraw tekst", "fix"),
        ("请修正这段文字", "fix"),
        ("この文を訂正してください", "fix"),
        ("이 글을 수정해 줘", "fix"),
        ("Übersetze das", "translate"),
        ("Переведи это", "translate"),
        ("把它翻译成英文", "translate"),
        ("Schreibe ein Gedicht", "create"),
        ("Напиши стихотворение", "create"),
        ("Résume ce texte", "summarize"),
        ("总结这篇文章", "summarize"),
    ],
)
def test_orders_are_understood_in_other_languages(text: str, concept: str) -> None:
    assert f"asks:{concept}" in asked(text).signals


def test_the_end_of_a_letter_is_no_order() -> None:
    features = asked(f"Correct the grammar.\n\n{LETTER}\n\nDo you like snow")
    assert "mentions:chatter" not in features.signals
    assert "asks:fix" in features.signals

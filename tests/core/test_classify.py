"""What a request will make the model write: the project's own prompts, must-haves, and the laws."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from paceline.bench.classify_scores import Prediction, scores_of
from paceline.bench.labelled import OWN, Labelled, labelled, own, read_rows
from paceline.core.classify import MODEL, classify
from paceline.core.features import measure
from paceline.core.types import Classification, Endpoint, Material, Turn, Workload
from paceline.core.views import view_of

Request = tuple[Endpoint, dict[str, Any]]

ROWS = read_rows(OWN)


def classified(endpoint: Endpoint, body: dict[str, Any]) -> Classification:
    return classify(measure(view_of(endpoint, {"model": "m", **body})))


def chat(*texts: str, system: str | None = None, **rest: Any) -> Request:
    """User and assistant in turn, the user first and last."""
    turns = [
        {"role": "assistant" if index % 2 else "user", "content": text}
        for index, text in enumerate(texts)
    ]
    opening = [{"role": "system", "content": system}] if system else []
    return Endpoint.CHAT_COMPLETIONS, {"messages": [*opening, *turns], **rest}


def parts(*texts: str) -> Request:
    content = [{"type": "text", "text": text} for text in texts]
    picture = {"type": "image_url", "image_url": {"url": "data:,"}}
    message = {"role": "user", "content": [*content, picture]}
    return Endpoint.CHAT_COMPLETIONS, {"messages": [message]}


def completion(prompt: str, **rest: Any) -> Request:
    return Endpoint.COMPLETIONS, {"prompt": prompt, **rest}


def agent(task: str, result: str) -> Request:
    """A coding agent's request after it has read a file."""
    call = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
    messages = [
        {"role": "system", "content": "You are a coding agent. Read and edit files with tools."},
        {"role": "user", "content": task},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": result},
    ]
    tools = [{"type": "function", "function": {"name": "read_file"}}]
    return Endpoint.CHAT_COMPLETIONS, {"messages": messages, "tools": tools}


PY = """def mean(values):
    total = 0
    for v in values:
        total += v
    return total / len(values)
"""
FENCED = f"```python\n{PY}```"
LETTER = (
    "Dear Ms Okafor, thank you for you're patience while we was looking into the delay of your "
    "parcel. It have been found in the depot in Leeds and will be send out on monday. We are very "
    "sorry for the inconvenience this has cause you and have add a voucher to your account."
)
BRIEF = (
    "Sehr geehrter Herr Wolf, ich schreibe ihnen weil die Heizung seit Montag nicht mehr geht. Der "
    "Hausmeister war schon da, konnte aber das Problem nicht finden. Bitte schicken sie jemand."
)
PISMO = (
    "Здравствуйте, Анна! Пишу вам что билеты на концерт уже куплены, но места не рядом. Если хотите "
    "я могу попросить поменять. Ответьте пожалуйста до пятницы. Ваш Сергей"
)
XIN = "亲爱的奶奶，我在学校一切都好，请您不要担心。昨天我们去了博物管，看到了很多古代的东西。等放假了我就回家看您。"


# ---- the project's own prompts -------------------------------------------------------------------


@pytest.fixture(scope="module")
def predictions() -> list[Prediction]:
    return [Prediction(row=row, classification=classify(row.features)) for row in own()]


def test_the_prompts_are_enough_to_tell_by(predictions: list[Prediction]) -> None:
    rows = [one.row for one in predictions]
    assert len(rows) >= 200
    for workload in Workload:
        assert sum(row.label is workload for row in rows) >= 60
    assert sum(row.label is None for row in rows) >= 10
    assert sum(not row.features.view.turns[-1].text.isascii() for row in rows) >= 60
    assert sum(len(row.features.view.turns) > 1 for row in rows) >= 30


def test_the_classifier_does_not_fall_behind(predictions: list[Prediction]) -> None:
    """Nothing is trained on these prompts. Measured: 0.954, 0.951, 0.055, 0.830, 0.050."""
    scores = scores_of(predictions)
    assert scores["accuracy"] >= 0.94
    assert scores["macro_f1"] >= 0.93
    assert scores["ece"] <= 0.08
    assert scores["copy_ratio_spearman"] >= 0.80
    assert scores["brier_055"] <= 0.07


# ---- what must be right --------------------------------------------------------------------------

SEARCH_REPLACE = "Answer with blocks:\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE"
UNIFIED_DIFF = "Reply with a unified diff: ---, +++ and @@ lines, nothing else."
APPLY_PATCH = (
    "Use apply_patch:\n*** Begin Patch\n*** Update File: a.py\n@@\n-old\n+new\n*** End Patch"
)

CODE = {
    "a plain order": chat("Write a Python function that checks whether a year is a leap year."),
    "German": chat("Schreibe eine Funktion in Python, die eine Liste umdreht."),
    "Spanish": chat("Escribe un programa en Java que lea un archivo."),
    "French": chat("Écris une fonction JavaScript qui trie un tableau."),
    "Russian": chat("Напиши функцию на Python для поиска простых чисел."),
    "Chinese": chat("用Python写一个函数，计算两个日期之间的天数。"),
    "Japanese": chat("Pythonで二分探索を実装してください。"),
    "tests of pasted code": chat(f"Write unit tests for this function.\n\n{FENCED}"),
    "a port": chat(f"Port this to Rust.\n\n{FENCED}"),
    "a stub": chat('def area(radius: float) -> float:\n    """The area of a circle."""\n'),
    "completion of code": completion("class Stack:\n    def push(self, item):\n"),
    "a suffix": completion("def add(a, b):\n", suffix="\n    return total\n"),
    "fill-in-the-middle marks": completion(
        "<|fim_prefix|>def add(a, b):\n    <|fim_suffix|>\n    return c<|fim_middle|>"
    ),
    "a cursor": chat(
        "def add(a, b):\n    <CURSOR>\n    return c", system="Complete the code at <CURSOR>."
    ),
    "parts": parts("Implement this in Go.", "A queue with push, pop and length."),
    "after small talk": chat("hi", "Hello!", "Write a bash script that renames all jpg files."),
    "tests after code": chat("mean in python", FENCED, "now write pytest tests for it"),
    "an agent's new file": agent("Add unit tests for mean in a new file.", PY),
}
CHAT = {
    "a question": chat("Why is the sky blue?"),
    "a poem": chat("Write a poem about the sea in winter."),
    "a greeting": chat("hello"),
    "German": chat("Was ist die Hauptstadt von Peru?"),
    "Spanish": chat("¿Por qué lloran los bebés?"),
    "French": chat("Raconte-moi une histoire de dragon."),
    "Russian": chat("Почему трава зелёная?"),
    "Chinese": chat("太阳系有多少颗行星？"),
    "Japanese": chat("日本の歴史について教えてください。"),
    "code explained": chat(f"Explain this code.\n\n{FENCED}"),
    "a question after code": chat("mean in python", FENCED, "why do you divide by len?"),
    "a summary": chat(f"Summarize this letter in one sentence.\n\n{LETTER}"),
    "a translation": chat(f"Translate to French:\n\n{LETTER}"),
    "a translation from German": chat(f"Übersetze ins Englische:\n\n{BRIEF}"),
    "a follow-up": chat("Who was Ada Lovelace?", "A mathematician.", "When did she die?"),
    "parts": parts("What is this letter about?", LETTER),
    "completion of prose": completion("Once upon a time in a village by the river,"),
    "a commit message": chat("Write a commit message.\n\n```diff\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n```"),
    "offered tools": chat("What is the weather in Oslo?", tools=[{"type": "function"}]),
}  # fmt: skip
EDIT = {
    "proofreading": chat(f"Proofread this letter and return it in full.\n\n{LETTER}"),
    "the letter first": chat(f"{LETTER}\n\nCorrect the grammar."),
    "German": chat(f"Korrigiere die Fehler in diesem Brief.\n\n{BRIEF}"),
    "Russian": chat(f"Исправь ошибки и верни весь текст.\n\n{PISMO}"),
    "Chinese": chat(f"改正这封信里的错别字，返回全文。\n\n{XIN}"),
    "German code": chat(f"Benenne total in summe um und gib den ganzen Code zurück.\n\n{FENCED}"),
    "Spanish code": chat(f"Corrige el error en esta función.\n\n{FENCED}"),
    "French code": chat(f"Ajoute une gestion des erreurs à cette fonction.\n\n{FENCED}"),
    "Japanese code": chat(f"この関数のバグを修正してください。\n\n{FENCED}"),
    "a rename": chat(f"Rename total to acc and return the full function.\n\n{FENCED}"),
    "a bug": chat(f"This fails for an empty list. Fix it.\n\n{FENCED}"),
    "parts": parts("Fix the grammar of this text.", LETTER),
    "search and replace": chat(f"a.py\n{FENCED}\n\nHandle an empty list.", system=SEARCH_REPLACE),
    "a unified diff": chat(f"a.py\n{FENCED}\n\nRename total to acc.", system=UNIFIED_DIFF),
    "apply_patch": chat(f"a.py\n{FENCED}\n\nFix the empty list.", system=APPLY_PATCH),
    "files given before": chat(
        f"Here are the files:\n\na.py\n{FENCED}", "Ok.", "Fix the empty list.", system=SEARCH_REPLACE
    ),
    "an agent's fix": agent("Fix the crash in mean for an empty list.", PY),
    "a prediction": chat(
        f"Rename total to acc.\n\n{FENCED}", prediction={"type": "content", "content": PY}
    ),
    "a change to the answer": chat("mean in python", FENCED, "rename it to average"),
    "an error in the answer": chat("mean in python", FENCED, "ZeroDivisionError, please fix"),
    "shorter, after an edit": chat(f"Fix the grammar:\n\n{LETTER}", LETTER, "now make it shorter"),
    "shorter, after an edit, in Russian": chat(f"Исправь ошибки:\n\n{PISMO}", PISMO, "теперь короче"),
    "the order is the system text": chat(
        LETTER, system="Proofread the user's text. Return the corrected text only."
    ),
    "a long file": chat(f"{PY * 400}\n\nRename total to acc and print the whole file."),
}  # fmt: skip


@pytest.mark.parametrize("name", CODE)
def test_new_code_is_code(name: str) -> None:
    assert classified(*CODE[name]).workload is Workload.CODE


@pytest.mark.parametrize("name", CHAT)
def test_new_prose_is_chat(name: str) -> None:
    assert classified(*CHAT[name]).workload is Workload.CHAT


@pytest.mark.parametrize("name", EDIT)
def test_text_given_back_changed_is_edit(name: str) -> None:
    assert classified(*EDIT[name]).workload is Workload.EDIT


@pytest.mark.parametrize("request_", [*CODE.values(), *CHAT.values(), *EDIT.values()])
def test_line_ends_do_not_decide_what_is_an_edit(request_: Request) -> None:
    endpoint, body = request_
    crlf = json.loads(json.dumps(body).replace("\\n", "\\r\\n"))
    here, there = classified(endpoint, body), classified(endpoint, crlf)
    assert (here.workload is Workload.EDIT) == (there.workload is Workload.EDIT)


# ---- the laws ------------------------------------------------------------------------------------

requests = st.sampled_from([*CODE.values(), *CHAT.values(), *EDIT.values()])
texts = st.text(max_size=200)


@given(request_=requests | st.builds(chat, texts) | st.builds(completion, texts), extra=texts)
def test_a_classification_is_sound(request_: Request, extra: str) -> None:
    endpoint, body = request_
    features = measure(view_of(endpoint, body))
    found = classify(features)
    quantiles = found.copy_ratio.quantiles
    assert list(quantiles) == sorted(quantiles)
    assert 0.0 <= quantiles[0] <= found.copy_ratio.expected <= quantiles[-1] <= 1.0
    if features.view.has_text:
        assert 1 / 3 - 1e-9 <= found.label_confidence <= 1.0
    assert len(found.reasons) <= 4
    other = replace(features.view, turns=(Turn(role="user", text=extra),))
    assert classify(replace(features, view=other)) == found, "the text itself is not looked at"


@pytest.mark.parametrize(
    "request_",
    [
        chat(""),
        chat(),
        parts(),
        completion(""),
        (Endpoint.COMPLETIONS, {"prompt": [1, 2, 3]}),
        (Endpoint.CHAT_COMPLETIONS, {}),
    ],
)
def test_without_text_nothing_is_guessed(request_: Request) -> None:
    found = classified(*request_)
    assert found.label_confidence == 0.0
    assert found.reasons == ("no-text",)


def test_an_edit_is_expected_to_copy_and_new_text_is_not() -> None:
    assert classified(*EDIT["a rename"]).copy_ratio.expected > 0.6
    assert classified(*CODE["a plain order"]).copy_ratio.expected < 0.3
    assert classified(*CHAT["a question"]).copy_ratio.expected < 0.3


def test_an_unsure_label_has_a_wide_copy_ratio() -> None:
    sure, unsure = (
        classified(*CODE["a plain order"]),
        classified(*chat(f"Other words.\n\n{FENCED}")),
    )
    assert unsure.label_confidence < sure.label_confidence
    assert width(sure) < width(unsure)


def width(found: Classification) -> float:
    return found.copy_ratio.quantiles[-1] - found.copy_ratio.quantiles[0]


def test_the_strongest_evidence_is_named_first_and_once() -> None:
    reasons = classified(*chat("Write a SQL query for the newest ten orders.")).reasons
    assert reasons[0] == "names a programming language"
    assert "asks to write" in reasons
    assert len(set(reasons)) == len(reasons)


def test_every_weight_can_be_told_of() -> None:
    for weights in MODEL.weights.values():
        for code, chat_, edit, _, words in weights.values():
            assert words
            assert ":" not in words
            assert code + chat_ + edit == pytest.approx(0.0, abs=0.05)


def test_the_same_words_mean_another_thing_beside_other_material() -> None:
    beside_nothing = classified(*chat("make it shorter"))
    beside_code = classified(*chat("mean in python", FENCED, "make it shorter"))
    assert beside_code.workload is Workload.EDIT
    assert beside_nothing.workload is not Workload.EDIT


def test_what_a_request_is_called_by_its_client_is_not_looked_at() -> None:
    endpoint, body = chat("Why is the sky blue?")
    named = {**body, "metadata": {"workload": "edit"}, "user": "code"}
    assert classified(endpoint, named) == classified(endpoint, body)


def test_a_row_of_the_prompts_is_read() -> None:
    row = labelled(
        {
            "request": {"messages": [{"role": "user", "content": f"Fix this:\n\n{FENCED}"}]},
            "acceptable": ["edit"],
            "copy_band": [0.8, 1.0],
        },
        source="here",
    )
    assert isinstance(row, Labelled)
    assert (row.label, row.copy_ratio, row.source) == (Workload.EDIT, pytest.approx(0.9), "here")
    assert row.features.material is Material.CODE

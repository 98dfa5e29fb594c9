"""What a request will make the model write: prompts that must be told apart, and the laws."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.classify import classify
from paceline.core.features import measure
from paceline.core.types import Classification, Endpoint, Workload
from paceline.core.views import view_of

REPOSITORY = Path(__file__).parents[2]
SHARED = Path(os.environ.get("PACELINE_SHARED", REPOSITORY.parent / "shared"))


def classified(endpoint: Endpoint, body: dict[str, Any]) -> Classification:
    return classify(measure(view_of(endpoint, {"model": "m", **body})))


# ---- the material of the prompts below -----------------------------------------------------------

PY = """def mean(values):
    total = 0
    for v in values:
        total += v
    return total / len(values)"""
JS = """function greet(name) {
  const msg = "Hello " + name;
  console.log(msg);
  return msg;
}"""
GO = """func sum(xs []int) int {
	t := 0
	for i := 0; i < len(xs); i++ {
		t += xs[i]
	}
	return t
}"""
NOTE = (
    "Dear Ms Okafor, thank you for you're patience while we was looking into the delay of your "
    "parcel. It have been found in the depot in Leeds and will be send out on monday. We are very "
    "sorry for the inconvenience this has cause you and have add a voucher to your account."
)
ARTICLE = (
    "The harbour at Port Ellery was dredged for the first time in 1911, when coal ships grew "
    "too deep for the old channel. For thirty years the work was done by a single steam dredger, "
    "the Patience, which the town bought second hand from a Dutch firm. After the war the channel "
    "silted up again and the council could not pay for a new machine, so the fishing fleet moved "
    "south and the warehouses along the quay were let to weavers and boat builders. Today a ferry "
    "runs twice a day, and the last warehouse is a museum of ropes."
)
YAML = """server:
  host: 0.0.0.0
  port: 8080
  log_level: info
database:
  url: postgres://db/main
  pool: 5"""

Request = tuple[Endpoint, dict[str, Any]]


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


def fence(code: str, language: str = "") -> str:
    return f"```{language}\n{code}\n```"


CODE = [
    chat("Write a Python function that returns the n-th Fibonacci number."),
    chat("Implement a thread-safe LRU cache in Go."),
    chat("Create a React component with a searchable dropdown."),
    chat("Give me a bash script that deletes log files older than seven days."),
    chat(
        "SQL query for the ten customers who spent the most last month, tables orders and customers"
    ),
    chat("write a regex that matches ISO dates"),
    chat("Can you write a C++ program that reads a matrix and prints its determinant?"),
    chat("Build me a REST API in Flask with endpoints to add, list and delete tasks."),
    chat("Generate a Dockerfile for a Node app that listens on port 3000"),
    chat("Write unit tests for a stack class with push, pop and peek in Java."),
    chat("binary search in rust"),
    chat("Create an HTML page with a navigation bar and a contact form."),
    chat("I need a TypeScript class for a priority queue with a custom comparator."),
    chat("Develop a program in Kotlin that simulates an elevator with three cabins."),
    chat("Implement merge sort in Haskell"),
    chat("Please write a function in JavaScript that debounces another function."),
    chat("Write a Verilog module for a 4-bit counter with synchronous reset."),
    chat("Make a small snake game in Python with pygame."),
    chat("Write a decorator in Python that retries a function three times with growing pauses."),
    chat("How do I write a script in PowerShell that lists all services that are stopped?"),
    chat("Generate a SQL schema for a library: books, members, loans."),
    chat("Write a MATLAB function to compute the moving average of a vector."),
    chat("Program a tic tac toe game in Java for the console"),
    chat("create a css animation for a pulsing button"),
    chat("Write the code for a linked list in C with insert and delete."),
    chat("Give me a Makefile for a C project with src and build folders."),
    chat("Implement Dijkstra's algorithm in Python using heapq."),
    chat("Design a class hierarchy in C# for shapes with area and perimeter methods."),
    chat("Write a PHP script which uploads an image and stores its path in MySQL."),
    chat(
        "Complete the following function:\n\n"
        'def is_palindrome(s: str) -> bool:\n    """True if s reads the same backwards."""\n'
    ),
    chat("Port this Python function to Rust:\n\n" + fence(PY, "python")),
    chat("Write pytest tests for the function below.\n\n" + fence(PY, "python")),
    chat("Translate this to Go.\n" + fence(JS, "javascript")),
    parts(
        "Write a Python script that renames all jpg files in a folder by their date.",
        "Use pathlib.",
    ),
    parts(
        "Implement this in Java",
        "A class BankAccount with deposit, withdraw and a history of transactions.",
    ),
    chat(
        "Hi!",
        "Hello! What can I do for you?",
        "Write a Python function that flattens a nested list.",
    ),
    chat(
        "What is a trie?",
        "A trie is a tree that stores words by their letters.",
        "Implement one in Python with insert and search.",
    ),
    completion('def quicksort(arr):\n    """Sort a list in place."""\n'),
    completion(
        "# Python 3\n# Returns the greatest common divisor of two numbers\ndef gcd(a, b):\n"
    ),
    completion("import numpy as np\n\ndef softmax(x):\n", suffix="\n    return e / e.sum()\n"),
    completion("<|fim_prefix|>def add(a, b):\n    <|fim_suffix|>\n    return total<|fim_middle|>"),
    chat(
        "Write a program to find all anagrams in a list of words.",
        system="You are a helpful programming assistant. Answer with code only.",
    ),
    chat("Create a GitHub Actions workflow that runs tests on every push."),
    chat("Code a Discord bot in node that replies with a random quote"),
    chat(
        "Write an async Rust function with tokio that downloads many URLs, ten at a time at most."
    ),
    chat("Write a Django model and view for blog comments"),
    chat("pandas: read a csv and plot monthly revenue as bars, code please"),
]

CHAT = [
    chat("hi"),
    chat("What is the capital of Mongolia?"),
    chat("Why is the sky blue?"),
    chat("Write a poem about the sea in winter."),
    chat("Tell me a joke about penguins."),
    chat("How do vaccines work?"),
    chat("Explain the difference between TCP and UDP."),
    chat("Give me five ideas for a birthday party for a seven year old."),
    chat("Write a short story about a lighthouse keeper who finds a letter."),
    chat("Who wrote Don Quixote and when?"),
    chat("What should I cook tonight with rice, eggs and spinach?"),
    chat("Plan a three day trip to Lisbon for a couple that likes food and walking."),
    chat("If a train travels 180 km in two and a half hours, what is its average speed?"),
    chat("Explain recursion to a ten year old."),
    chat("What are the pros and cons of remote work?"),
    chat("Write an email to my landlord about the broken heating."),
    chat("Describe the plot of Romeo and Juliet in three sentences."),
    chat("Is it safe to eat raw salmon?"),
    chat("Write a motivational speech for a school sports day."),
    chat("How can I fall asleep faster?"),
    chat("Compare the French and the American revolution."),
    chat("Suggest a name for a bakery that sells only rye bread."),
    chat("What does this function do?\n\n" + fence(PY, "python")),
    chat("Explain this code line by line.\n\n" + fence(JS, "js")),
    chat("What is the time complexity of this?\n\n" + fence(GO, "go")),
    chat("Summarize the following article in two sentences.\n\n" + ARTICLE),
    chat("Read the text and answer: when was the harbour first dredged?\n\n" + ARTICLE),
    chat(
        "Write a commit message for this change:\n\n"
        + fence("-    total = 0\n+    total = 0.0", "diff")
    ),
    chat("Review this code and tell me what you think of it.\n\n" + fence(PY, "python")),
    chat("Why does my Python program use so much memory?"),
    chat("What is the difference between a list and a tuple in Python?"),
    chat("Should I learn Rust or Go as my second language?"),
    parts("What is in this picture?", "It was taken in the Alps."),
    parts("Explain the main idea of the text.", ARTICLE),
    chat(
        "Who was Ada Lovelace?",
        "A mathematician who wrote the first published algorithm.",
        "And when did she die?",
    ),
    chat(
        "Recommend a book on trees.",
        "Try The Hidden Life of Trees.",
        "Is there one with more pictures?",
    ),
    chat(
        "What is entropy?",
        "A measure of how many ways a state can be realised.",
        "I don't understand. Explain it more simply please.",
    ),
    chat("hello", "Hi! How can I help?", "tell me something interesting about octopuses"),
    completion("Once upon a time in a village by the river,"),
    completion("Q: What is the largest planet?\nA:"),
    completion("The three most important causes of the First World War were"),
    chat("I feel lonely since I moved to a new city. What can I do?"),
    chat("Write a haiku about autumn rain."),
    chat("thanks!"),
    chat(
        "Write a blog article about the benefits of cold showers.",
        system="You are a friendly writer.",
    ),
    chat("What are the symptoms of iron deficiency and how is it treated?"),
    chat("Translate to French: Where is the railway station?"),
    chat("Brainstorm ten taglines for a bicycle repair shop."),
    chat("Describe how a diesel engine works."),
]

EDIT = [
    chat("Fix the typos in this text:\n\n" + NOTE),
    chat("Correct the grammar: She dont likes going to the market because it are too crowded."),
    chat("Proofread the following letter and return the corrected version.\n\n" + NOTE),
    chat(
        "Rename the variable total to acc and return the full function.\n\n" + fence(PY, "python")
    ),
    chat("Add type hints to this function. Output only the code.\n\n" + fence(PY, "python")),
    chat("Fix the bug in this code and return the whole file:\n\n" + fence(PY, "python")),
    chat(
        "Refactor this to use an f-string / template literal, keep everything else:\n\n"
        + fence(JS, "js")
    ),
    chat("Change the port to 9090 and return the complete file.\n\n" + fence(YAML, "yaml")),
    chat("Replace every occurrence of harbour with port:\n\n" + ARTICLE),
    chat(
        "Add docstrings to the functions below without changing anything else.\n\n"
        + fence(PY, "python")
    ),
    chat("Convert the tabs to spaces in this file:\n\n" + fence(GO, "go")),
    chat(
        "Remove all comments from this code\n\n"
        + fence("# first\nx = 1  # one\n# second\ny = 2", "python")
    ),
    chat(
        "Correct the spelling mistakes in the paragraph below. Do not change anything else.\n\n"
        + NOTE
    ),
    chat("fix the typo: teh quick brown fox jumps ovre the lazy dog"),
    chat("Please edit this email so that it has no grammatical errors:\n\n" + NOTE),
    chat(
        "Update the log level to debug in this config and give me the entire config back\n\n"
        + fence(YAML, "yaml")
    ),
    chat(
        "Rewrite this function with a list comprehension or sum() but keep the name. "
        "Return the full code.\n\n" + fence(PY, "python")
    ),
    chat(
        "Insert a section about tides after the second sentence and return the whole text.\n\n"
        + ARTICLE
    ),
    chat("Reformat this code with two-space indentation:\n\n" + fence(PY, "python")),
    chat("Fix this:\n\n" + fence("def f(x)\n    retrun x+1", "python")),
    chat(
        "Here is my code. It raises ZeroDivisionError for an empty list. Fix it.\n\n"
        + fence(PY, "python")
    ),
    chat("Correct this sentence: He go to school every days."),
    chat(
        "Rename greet to sayHello everywhere in this file and output the updated file only.\n\n"
        + fence(JS, "javascript")
    ),
    chat("Remove the line that logs the message. Return the full updated code.\n" + fence(JS)),
    chat(
        "Add error handling to this function and show the complete modified version.\n\n"
        + fence(GO, "go")
    ),
    parts("Fix the grammar of this text.", NOTE),
    parts("Rename the function to average.", fence(PY, "python")),
    parts("Return the file with the pool size set to 20, nothing else.", fence(YAML, "yaml")),
    chat(
        "Write a function that computes the mean.",
        fence(PY, "python"),
        "Now rename it to average and add a docstring.",
    ),
    chat(
        "Write a greeting function in JavaScript.",
        "Here you are:\n\n" + fence(JS, "js"),
        "fix the variable name, it should be message",
    ),
    chat("Write a config for the server", fence(YAML, "yaml"), "change the port to 9000"),
    chat("mean in python please", fence(PY, "python"), "add type hints"),
    chat(
        "Apply this change to the file: the default pool should be 10.\n\n<file>\n"
        + YAML
        + "\n</file>"
    ),
    chat(
        "Sort the keys of this YAML alphabetically and return the full document:\n\n"
        + fence(YAML, "yaml")
    ),
    chat(
        "Fill in the missing words in the text below and return it in full.\n\n"
        + ARTICLE.replace("Dutch", "____").replace("ropes", "____")
    ),
    chat(
        "Swap the two arguments of this function and keep the rest unchanged.\n\n"
        + fence("def div(a, b):\n    return a / b", "python")
    ),
    chat(
        "Delete the second paragraph of this text and give back the rest unchanged.\n\n"
        + ARTICLE
        + "\n\n"
        + NOTE
    ),
    chat(
        "Modify the loop so that it skips negative values. Return the entire function.\n\n"
        + fence(GO, "go")
    ),
    chat("Extract all sentences that mention the ferry, verbatim:\n\n" + ARTICLE),
    chat("Simplify this code without changing what it does\n\n" + fence(JS, "js")),
    completion(
        "Correct the spelling mistakes in this text and return the corrected text.\n\n"
        + NOTE
        + "\n\nCorrected text:"
    ),
    chat(
        "Capitalize every heading and return the full document.\n\n# first steps\n\n"
        "some text here about starting\n\n# next steps\n\nmore text about going on"
    ),
    chat("Anonymize this message: replace all names with NAME.\n\n" + NOTE),
    chat("Turn all double quotes into single quotes in this snippet:\n\n" + fence(JS, "js")),
    chat(
        "Edit the file.\n\n" + fence(PY, "python"),
        system="You edit files. Answer with SEARCH/REPLACE blocks:\n"
        "<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE",
    ),
    chat(
        "Rename total to acc.\n\n" + fence(PY, "python"),
        prediction={"type": "content", "content": PY},
    ),
]


# ---- each class ----------------------------------------------------------------------------------


def first_words(request: Request) -> str:
    endpoint, body = request
    content = (
        body["prompt"] if endpoint is Endpoint.COMPLETIONS else body["messages"][-1]["content"]
    )
    text = content if isinstance(content, str) else content[0]["text"]
    return " ".join(text.split()[:8])


@pytest.mark.parametrize("request_", CODE, ids=first_words)
def test_new_code_is_code(request_: Request) -> None:
    assert classified(*request_).workload is Workload.CODE


@pytest.mark.parametrize("request_", CHAT, ids=first_words)
def test_new_prose_is_chat(request_: Request) -> None:
    assert classified(*request_).workload is Workload.CHAT


@pytest.mark.parametrize("request_", EDIT, ids=first_words)
def test_text_given_back_changed_is_edit(request_: Request) -> None:
    assert classified(*request_).workload is Workload.EDIT


@pytest.mark.parametrize("request_", [*CODE, *CHAT, *EDIT], ids=first_words)
def test_line_ends_do_not_decide_what_is_an_edit(request_: Request) -> None:
    endpoint, body = request_
    crlf = json.loads(json.dumps(body).replace("\\n", "\\r\\n"))
    here, there = classified(endpoint, body), classified(endpoint, crlf)
    assert (here.workload is Workload.EDIT) == (there.workload is Workload.EDIT)


def test_labelled_prompts_are_mostly_right() -> None:
    """In sample: the weights were fitted to these prompts."""
    path = SHARED / "data" / "prompts-dev.jsonl"
    if not path.exists():
        pytest.skip(f"there are no labelled prompts at {path}")
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    right = sum(
        classified(Endpoint.CHAT_COMPLETIONS, row["request"]).workload in row["acceptable"]
        for row in rows
    )
    assert right / len(rows) >= 0.80


# ---- the laws ------------------------------------------------------------------------------------

requests = st.sampled_from([*CODE, *CHAT, *EDIT])
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
        assert set(found.reasons) <= features.signals
    assert len(found.reasons) <= 4
    assert classify(replace(features, ask=extra)) == found, "only the signals count"


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
    edit = classified(*chat("Fix the bug and return the whole file:\n\n" + fence(PY, "python")))
    code = classified(*chat("Write a quicksort in Python."))
    prose = classified(*chat("Why is the sky blue?"))
    assert edit.copy_ratio.expected > 0.6
    assert code.copy_ratio.expected < 0.3
    assert prose.copy_ratio.expected < 0.3


def test_an_unsure_label_has_a_wide_copy_ratio() -> None:
    sure = classified(*chat("Fix the bug and return the whole file:\n\n" + fence(PY, "python")))
    unsure = classified(*chat("Use other words.\n\n" + fence(PY, "python")))
    assert unsure.label_confidence < sure.label_confidence
    width = [
        found.copy_ratio.quantiles[-1] - found.copy_ratio.quantiles[0] for found in (sure, unsure)
    ]
    assert width[0] < width[1]


def test_the_strongest_evidence_is_named_first() -> None:
    found = classified(*chat("Write a SQL query for the newest ten orders."))
    assert found.reasons[:2] == ("names-language", "names-code")


def test_what_a_request_is_called_by_its_client_is_not_looked_at() -> None:
    endpoint, body = chat("Why is the sky blue?")
    labelled = {**body, "metadata": {"workload": "edit"}, "user": "code"}
    assert classified(endpoint, labelled) == classified(endpoint, body)

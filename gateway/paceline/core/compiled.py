"""Who answers what every request asks: the compiled twin where it was built, else its law.

The law is the Python that is read, changed and explained. Its twin gives the same results, and is
given the law's own tables and numbers, so that none is written twice (see `paceline/native/`).
Nothing else in the core chooses between the two. A law that asks another twin, as those of
`features.py` and `classify.py` do, stands above this module, and brings itself when it is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from paceline.core import caller as calling
from paceline.core import choose as choosing
from paceline.core import copying, material, offers, only_model, rules, signals, types, views_chat
from paceline.core import judge as judging
from paceline.core import look as looking
from paceline.core.lexicon import CONCEPTS, STEM_CHARS, STEMS, WORDS
from paceline.core.types import (
    Classification,
    Material,
    RequestFeatures,
    RequestView,
    Workload,
)

if TYPE_CHECKING:
    from paceline.core.classify import Model

__all__ = [
    "IS_COMPILED", "caller_of", "chat_view", "choose", "classify_by", "judge", "look", "measure_by",
    "outcome_of", "renamed",
]  # fmt: skip

LOOK_TABLES: Mapping[str, Any] = {
    "concepts": tuple(CONCEPTS),
    "words": WORDS,
    "stems": STEMS,
    "weak": signals.WEAK,
    "actions": signals.ACTIONS,
    "languages": signals.LANGUAGES,
    "to": signals.TO,
    "to_words": signals.ASCII_TO_WORDS,
    "ask_sizes": signals.ASK_SIZES,
    "unfinished_ends": signals.OPEN_ENDS,
    "new_file": signals.NEW_FILE,
    "fill_marks": signals.FILL_MARKS,
    "reading_marks": signals.READING_MARKS,
    "symbols": material.SYMBOLS,
    "openers": material.OPENERS,
    "code_start": "".join(material.CODE_START),
    "open_ends": "".join(material.OPEN_ENDS),
    "code_share": material.CODE_SYMBOL_SHARE,
    "line_share": material.LINE_SYMBOL_SHARE,
    "long_line_share": material.LONG_LINE_SYMBOL_SHARE,
    "stem_chars": STEM_CHARS,
    "opening_words": signals.OPENING_WORDS,
    "end_chars": signals.END_CHARS,
    "reading_chars": signals.READING_CHARS,
    "look_chars": material.LOOK_CHARS,
    "ask_chars": material.ASK_CHARS,
    "sample_chars": material.SAMPLE_CHARS,
    "short_sample_chars": material.SHORT_SAMPLE_CHARS,
    "paragraph_chars": material.PARAGRAPH_CHARS,
    "short_paragraph_chars": material.SHORT_PARAGRAPH_CHARS,
    "max_lines": material.MAX_LINES,
}

try:
    from paceline.native import bodies as _bodies
    from paceline.native import caller as _caller
    from paceline.native import costs as _costs
    from paceline.native import features as _features
    from paceline.native import judgement as _judgement
    from paceline.native import look as _look
    from paceline.native import rules as _rules

    _bodies.configure(views_chat, only_model)
    _caller.configure(calling, types)
    _costs.configure(offers, choosing, types)
    _judgement.configure(judging, copying.LEAST_LOG)
    _look.configure(looking.look, LOOK_TABLES)
    _rules.configure(rules, types)
except ImportError:  # there was no C compiler, or msgspec keeps fields where no twin finds them
    IS_COMPILED = False
    caller_of, choose = calling.caller_of, choosing.choose
    judge, look = judging.judge, looking.look
    chat_view, renamed = views_chat.chat_view, only_model.renamed
    outcome_of = rules.outcome_of
else:
    IS_COMPILED = True
    caller_of, choose = _caller.caller_of, _costs.choose
    judge, look = _judgement.judge, _look.look
    chat_view, renamed = _bodies.chat_view, _bodies.renamed
    outcome_of = _rules.outcome_of


_Measure = Callable[[RequestView], RequestFeatures]


def measure_by(law: _Measure, **numbers: int) -> _Measure:
    """Who measures requests: the twin of `features.measure_law`, given what that goes by, or it."""
    if not IS_COMPILED:
        return law
    numbers["system_chars"] = signals.SYSTEM_MARK_CHARS
    numbers["short_answer_tokens"] = signals.SHORT_ANSWER_TOKENS
    _features.configure(law, look, signals.system_signals, types, numbers)
    return _features.measure


_Classify = TypeVar("_Classify", bound=Callable[..., Classification])


def classify_by(
    law: _Classify,
    model: Model,
    sizes: tuple[int, ...],
    classes: tuple[Workload, ...],
    evidence: type,
) -> _Classify:
    """Who classifies: the twin of `classify.classify_law` with the model that is its default, or
    it."""
    if not IS_COMPILED:
        return law
    _judgement.configure_classes(
        law, model, tuple(Material), sizes, classes, copying.mixture, copying.STEPS,
        RequestFeatures, RequestView, Classification, evidence,
    )  # fmt: skip
    return _judgement.classify  # type: ignore[return-value]

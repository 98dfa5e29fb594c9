"""The values that decisions are made from, and the decisions.

Times are seconds on a monotonic clock, sizes of text are characters of decoded text unless the
name says bytes. Everything here is frozen: a decision can be kept, replayed and compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from operator import attrgetter
from typing import Any

from msgspec import Struct, field
from msgspec.structs import force_setattr

_IS_UP = attrgetter("up")


class Endpoint(StrEnum):
    """What the data plane asks workers for; each maps its body to one `RequestView`."""

    CHAT_COMPLETIONS = "chat_completions"
    COMPLETIONS = "completions"
    RESPONSES = "responses"
    MESSAGES = "messages"  # Anthropic's
    COUNT_TOKENS = "count_tokens"  # Anthropic's: the body of messages, and nothing is generated
    EMBEDDINGS = "embeddings"
    RERANK = "rerank"
    SCORE = "score"
    TOKENIZE = "tokenize"
    DETOKENIZE = "detokenize"
    TRANSCRIPTIONS = "transcriptions"


GENERATING = frozenset(
    [Endpoint.CHAT_COMPLETIONS, Endpoint.COMPLETIONS, Endpoint.RESPONSES, Endpoint.MESSAGES]
)
"""Whose answers say how many tokens were generated, and how well they were drafted."""


class Workload(StrEnum):
    """What the task makes the model write, which is what decides how well it drafts."""

    CODE = "code"  # mostly new code
    CHAT = "chat"  # mostly new prose
    EDIT = "edit"  # mostly text that stands in the prompt already


class Priority(StrEnum):
    INTERACTIVE = "interactive"
    BATCH = "batch"


class Reason(StrEnum):
    """Why a pool was chosen: a closed set, used as a metric label."""

    RULE = "rule"  # an operator's rule named it
    DEFAULT = "default"  # no rule spoke; the model's default pool
    ONLY = "only"  # the gates or rules left exactly one
    GATE = "gate"  # the default pool may not take this request; the first that may
    SPILL = "spill"  # every worker of the pool wanted is down
    LAST_RESORT = "last_resort"  # no worker of any allowed pool is up; one is tried all the same
    COST = "cost"  # least expected cost
    STAY = "stay"  # its conversation is there, and nowhere else is enough cheaper
    UNSURE = "unsure"  # another is cheaper on average, but in too few of the cases it may be
    EXPLORE = "explore"  # one that costs little more, to learn how it drafts


class Turn(Struct, frozen=True, kw_only=True):
    """One message: its role and its text, content parts joined by newlines."""

    role: str
    text: str


class RequestView(Struct, frozen=True, kw_only=True):
    """What any endpoint's body says, in one shape. Nothing here is rewritten or sent on."""

    endpoint: Endpoint
    model: str
    stream: bool
    system: str = ""
    turns: tuple[Turn, ...] = ()
    suffix: str = ""  # completions: text after the gap (fill in the middle)
    prediction: str = ""  # OpenAI predicted outputs: the caller's own guess at the answer
    num_tools: int = 0
    tool_choice_forced: bool = False
    response_format: str | None = None  # "json_schema", "json_object", "grammar"; None is free text
    max_tokens: int | None = None
    temperature: float | None = None
    n: int = 1
    num_choices: int = 1  # n for every prompt
    logprobs: bool = False
    min_p: bool = False  # set to something that vLLM does not treat as off
    logit_bias: bool = False
    has_text: bool = True  # False for token-id prompts, and where no text foretells the output


class Material(StrEnum):
    """What a request gives the model to copy from, besides the caller's own words."""

    NONE = "none"
    SENTENCE = "sentence"  # beside the instruction
    TEXT = "text"
    CODE = "code"  # structured data too
    TOOL_RESULT = "tool-result"
    ANSWERED_CODE = "answered-code"  # the model's own, in an earlier turn
    ANSWERED_TEXT = "answered-text"
    EARLIER_CODE = "earlier-code"  # the caller's, in an earlier turn
    EARLIER_TEXT = "earlier-text"


class RequestFeatures(Struct, frozen=True, kw_only=True):
    """The bounded look at a request that classification uses (`features.py` measures them)."""

    view: RequestView
    material: Material
    material_chars: int  # length of that material, uncut
    prompt_chars: int  # all text of the prompt, uncut
    signals: frozenset[str] = frozenset()  # names of the signals seen


class CopyRatio(Struct, frozen=True, kw_only=True):
    """Belief about the share of the output's word 4-grams that stand in the prompt.

    Five equally likely values in [0, 1], ascending: the 0.1, 0.3, 0.5, 0.7, 0.9 quantiles.
    """

    quantiles: tuple[float, float, float, float, float]
    expected: float = -1.0  # worked out from them, whatever is given

    def __post_init__(self) -> None:
        within = self.quantiles[0] >= 0.0 and self.quantiles[-1] <= 1.0
        if not within or list(self.quantiles) != sorted(self.quantiles):
            raise ValueError(f"quantiles must ascend within [0, 1]: {self.quantiles}")
        force_setattr(self, "expected", sum(self.quantiles) / len(self.quantiles))


class Classification(Struct, frozen=True, kw_only=True):
    """The workload believed in, how firmly, and what spoke for it.

    `label_confidence` is the posterior of `workload` in [0, 1]; 0 means that there was no text to
    judge by, and then no rule about the workload matches. `evidence` is what spoke for it, the
    strongest first; it is put into words only when asked, which most requests' is not.
    """

    workload: Workload
    label_confidence: float
    copy_ratio: CopyRatio
    evidence: Iterable[str] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(self.evidence)


class Speculation(Struct, frozen=True, kw_only=True):
    """How a pool drafts. `method` is None where it is not known (workers found by address only)."""

    method: str | None
    num_speculative_tokens: int
    options: Mapping[str, Any] = field(default_factory=dict)  # the rest, in vLLM's own names

    def __post_init__(self) -> None:
        if self.num_speculative_tokens < 1:
            raise ValueError("num_speculative_tokens must be at least 1")


class WorkerLoad(Struct, frozen=True, kw_only=True):
    """What a worker's own /metrics said, engines added up; None is unknown, never zero."""

    running: float | None = None
    waiting: float | None = None
    kv_cache_usage: float | None = None  # a fraction, averaged over engines


class WorkerSnapshot(Struct, frozen=True, kw_only=True):
    """One worker at the moment of a decision."""

    url: str  # its id as well
    in_flight: int = 0  # requests that this gateway has there now
    last_picked: int = 0  # grows from one request of the gateway to the next; 0 is never
    up: bool = True
    on_trial: bool = False  # it failed before, and one request is to show whether it still does
    share: float = 1.0  # of a full load that it may carry: grows to 1 after a return
    load: WorkerLoad = WorkerLoad()
    drafting: float = 0.0  # draft slots a pass of the requests in flight: the sum of their k
    elsewhere: float = 0.0  # requests it was last seen to have from others than this gateway
    per_request_k: bool = False  # it lets each request say how many tokens to draft


class PoolSnapshot(Struct, frozen=True, kw_only=True):
    name: str
    speculation: Speculation | None  # None is a plain pool: the true "off"
    workers: tuple[WorkerSnapshot, ...]
    max_num_seqs: int | None = None  # sequences that a worker runs at a time; None is not known

    @property
    def is_up(self) -> bool:
        return any(map(_IS_UP, self.workers))


class ModelSnapshot(Struct, frozen=True, kw_only=True):
    """A model that clients may ask for, and the pools that serve it, in the operator's order."""

    name: str
    default_pool: str
    pools: tuple[PoolSnapshot, ...]

    def pool(self, name: str) -> PoolSnapshot:
        """Raises KeyError: names are checked when the configuration is read."""
        for pool in self.pools:
            if pool.name == name:
                return pool
        raise KeyError(name)


class Caller(Struct, frozen=True, kw_only=True):
    """What the request says beside its body.

    `headers` are lower-case names to values; `conversation` identifies the conversation for
    stable shares (a session header, prompt_cache_key, else the first user turn), already
    scoped by key and model; empty where nothing does. `request_id` is another's each time.
    """

    key_name: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    workload: Workload | None = None  # the client's label; it does not replace the copy ratio
    priority: Priority = Priority.INTERACTIVE
    conversation: str = ""
    request_id: str = ""
    template: int = 0  # what requests of one application share; 0 is none, or nobody asked


class Place(Struct, frozen=True):
    """Where a conversation's last request went."""

    pool: str
    worker: str


class Terms(Struct, frozen=True):
    """What a request is expected to cost at one worker with one k, as `choose.py` adds it up.

    Seconds, tokens, and what they follow from: `inverse_tau` is the mean of 1 / tokens a pass,
    `pass_s` a pass with this request in it and `pass_before_s` without, `running` the sequences
    beside it, `scheduled` the tokens of that pass, of which loads up to `known_to` were seen,
    `queue` how many lifetimes of such a request it waits for a seat. `harm` is what the sequences
    beside it lose, for each second that it decodes; `preference` multiplies the cost where an
    operator's rule prefers the pool. `cost_s` is the sum, and `slope_s` what of it is to be
    multiplied with 1 / tokens a pass.
    """

    pool: str
    worker: str
    k: int
    inverse_tau: float
    output_tokens: float
    running: float
    scheduled: float
    known_to: float
    pass_s: float
    pass_before_s: float
    prefill_s: float
    queue: float
    harm: float
    preference: float
    slope_s: float
    cost_s: float

    @property
    def tokens_per_pass(self) -> float:
        return 1.0 / self.inverse_tau

    @property
    def tokens_per_s(self) -> float:
        """Expected speed of the stream."""
        return 1.0 / (self.inverse_tau * self.pass_s)

    @property
    def decode_s(self) -> float:
        return self.output_tokens * self.pass_s * self.inverse_tau

    @property
    def wait_s(self) -> float:
        return self.queue * self.decode_s

    @property
    def others_s(self) -> float:
        """What the sequences beside it lose."""
        return self.harm * self.decode_s

    @property
    def fixed_s(self) -> float:
        """What of the cost does not depend on tokens a pass."""
        return self.prefill_s * self.preference

    @property
    def extrapolates(self) -> bool:
        """Whether the time of its pass is a guess: no load as high was seen so far."""
        return self.scheduled > self.known_to


class Choice(Struct, frozen=True, kw_only=True):
    """A pool, worker and k by cost, and what it was weighed against: the best of each pool,
    cheapest first.

    `confidence` is P(its cost is below 0.97 of that of the best in the default pool), over the
    cases that the request may be; None where there is no default to compare with.
    """

    chosen: Terms
    weighed: tuple[Terms, ...]
    confidence: float | None

    @property
    def runner_up(self) -> Terms | None:
        return next((terms for terms in self.weighed if terms.pool != self.chosen.pool), None)


class PoolVerdict(Struct, frozen=True, kw_only=True):
    """One pool's part in a decision: `refused` says why it could not be used, else None."""

    pool: str
    refused: str | None


class RuleVerdict(Struct, frozen=True, kw_only=True):
    """One rule's part. `obstacle` is what stood in its way, None for the rule that won; it is put
    into words only when asked, which most requests' are not."""

    rule: str
    obstacle: object | None

    @property
    def why_not(self) -> str | None:
        return None if self.obstacle is None else str(self.obstacle)


class Decision(Struct, frozen=True, kw_only=True):
    """Where a request goes and why."""

    classification: Classification
    model: str
    pool: str
    worker: str
    reason: Reason
    rule: str | None  # the rule that decided, if one did
    pools: tuple[PoolVerdict, ...]
    rules: tuple[RuleVerdict, ...]
    choice: Choice | None = None  # what costs said; None where they were not asked

    @property
    def k(self) -> int | None:
        """How many tokens to draft a pass; None is the worker's own."""
        return self.choice.chosen.k if self.choice is not None else None

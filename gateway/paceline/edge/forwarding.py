"""One request to a worker and its answer back: decided, asked, and asked again once where it helps.

Asked again is before anything went to the client, and then only what found no worker, what a worker
died on, and what one was too busy for. A timeout has cost its patience already, and an error is the
worker's answer.
"""

from __future__ import annotations

from collections.abc import Callable

from paceline.core.decide import decide
from paceline.core.dialects import dialect_of
from paceline.core.features import measure
from paceline.core.hints import Hints
from paceline.core.types import GENERATING, Decision
from paceline.edge.bodies import Body
from paceline.edge.learner import Learner
from paceline.edge.lessons import Lesson
from paceline.edge.own_answers import model_named
from paceline.edge.relay import Answer, Whole, check_status
from paceline.edge.request import Request
from paceline.edge.stream import Stream
from paceline.edge.teacher import Kept
from paceline.edge.telemetry import Telemetry
from paceline.edge.upstream import Exchange
from paceline.edge.wire import passed_down, upstream_request_id
from paceline.edge.workers import BACK_PRESSURE, Fleet, Model
from paceline.errors import WorkerBusy, WorkerDied, WorkerError, WorkerUnavailable
from paceline.settings import Mode, Settings

RETRYABLE = (WorkerUnavailable, WorkerDied, WorkerBusy)
"""Failures after which, with nothing sent to the client, another worker may be asked. Once."""


class Forwarder:
    def __init__(
        self,
        settings: Settings,
        fleet: Fleet,
        telemetry: Telemetry,
        learner: Learner | None,
        now_s: Callable[[], float],
    ) -> None:
        """Without a learner nothing is learned, and only rules decide."""
        self._settings = settings
        self._learner = learner
        self._adapts = learner is not None and settings.mode is Mode.ADAPTIVE
        self._fleet = fleet
        self._telemetry = telemetry
        self._now_s = now_s

    async def forward(self, request: Request, body: Body) -> None:
        """Asks the worker decided on, and one more if the first failed before it answered, or has
        too much to do. Raises RequestError, WorkerError."""
        model = model_named(self._fleet, body.view.model)
        learner = self._learner
        caller = request.caller(body.view, body.said, model.name, with_template=learner is not None)
        features = measure(body.view)
        adaptive = learner.adaptive(model.name, caller) if learner and self._adapts else None

        def decided(*tried: str) -> Decision:
            snapshot = model.snapshot(self._now_s(), without=tried)
            return decide(features, caller, snapshot, self._settings.rules, adaptive)

        def begun(decision: Decision) -> tuple[int, Lesson | None]:
            """How many tokens are drafted, and what is noted to learn from. Of several choices,
            passes cannot be told from tokens: nothing is learned of them."""
            if learner is None or body.view.endpoint not in GENERATING:
                return 0, None
            k = learner.k_of(decision, self._told_k(body, decision))
            if body.view.num_choices != 1:
                return k, None
            return k, learner.begins(decision, features, caller, k)

        first = decided()

        def others() -> bool:
            """One that is down is none: its failure would take the place of a true answer."""
            other = decided(first.worker).worker
            return other != first.worker and self._fleet.workers[other].up

        try:
            await self._ask(request, body, model, first, *begun(first), others=others)
        except RETRYABLE:
            if request.client.started:
                raise
            second = decided(first.worker)
            if second.worker == first.worker:  # there is nobody else
                raise
            await self._ask(request, body, model, second, *begun(second), others=lambda: False)

    async def _ask(
        self,
        request: Request,
        body: Body,
        model: Model,
        decision: Decision,
        k: int,
        lesson: Lesson | None,
        *,
        others: Callable[[], bool],
    ) -> None:
        """One worker's answer, passed on. Raises WorkerBusy instead if it has too much to do and
        there are `others`; WorkerError, if it fails before anything of it went out."""
        record = request.record
        record.decision = decision
        record.answered_s = record.first_event_s = None  # what is known of a worker asked before
        self._telemetry.decided(decision)
        worker = self._fleet.workers[decision.worker]
        with worker.request(k):
            record.sent_s = self._now_s()
            exchange = await worker.upstream.send(
                "POST",
                request.client.path,
                headers=[
                    (b"Content-Type", body.content_type),
                    (b"X-Request-Id", upstream_request_id(request.id)),
                    *request.passed_up(),
                ],
                body=body.rewritten(model.settings.upstream_name, self._told_k(body, decision)),
                timeout_s=self._settings.timeouts.first_byte_s,
            )
            try:
                kept = None if lesson is None else lesson.kept
                relay = self._relay(request, body, exchange, kept)
                status = await relay.begin()
                worker.answers(status)
                if status in BACK_PRESSURE and others():
                    raise WorkerBusy(f"a worker answered {status}")
                await relay.relay()
                if isinstance(record.failure, WorkerError):
                    worker.failed(record.failure.message)
                elif status < 500:
                    worker.succeeded()
                    if lesson is not None and self._learner is not None and status == 200:
                        self._learner.ended(lesson, record, body)
            finally:
                exchange.close()

    def _told_k(self, body: Body, decision: Decision) -> int | None:
        """How many tokens the worker is told to draft; None leaves that to it."""
        takes_k = body.takes_k and self._fleet.workers[decision.worker].per_request_k
        return decision.k if takes_k else None

    def _relay(
        self, request: Request, body: Body, exchange: Exchange, kept: Kept | None
    ) -> Whole | Stream:
        """What passes this answer on, and keeps it where it is to be studied. Raises
        WorkerProtocolError."""
        check_status(exchange.status)
        answer = Answer(
            exchange,
            request.client,
            request.record,
            headers=lambda: [
                *passed_down(exchange.headers, exchange.named),
                *request.our_headers(),
            ],
            timeouts=self._settings.timeouts,
            now_s=self._now_s,
            kept=kept,
        )
        kind = exchange.named.get(b"content-type", b"")
        if exchange.status != 200 or not kind.lower().startswith(b"text/event-stream"):
            return Whole(answer, learns=body.view.endpoint in GENERATING)
        return Stream(
            answer,
            dialect_of(body.view.endpoint, num_choices=body.view.num_choices),
            remove_usage=body.usage_added.chunk,
            hints=Hints(cut_usage=body.usage_added.members) if request.wants_hints else None,
        )

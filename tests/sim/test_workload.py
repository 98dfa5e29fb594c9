"""Simulated requests: the mix that was asked for, the classifier's real errors in it."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from statistics import mean

import pytest

from paceline.core.types import Workload
from paceline.sim.scenario import Scenario, SimulatedPool
from paceline.sim.workload import GENERAL, mean_output_tokens, requests, rows

SHARES = {Workload.CODE: 0.3, Workload.CHAT: 0.3, Workload.EDIT: 0.4}
MIX = Scenario(
    name="test",
    shares=SHARES,
    pools=(SimulatedPool(name="plain"),),
    label_pools=dict.fromkeys(Workload, "plain"),
    duration_s=400.0,
)


def test_the_table_has_hundreds_of_each_class_and_the_classifiers_errors() -> None:
    counts = Counter(row.workload for row in rows())
    assert min(counts.values()) > 200
    wrong = mean(row.believed.workload is not row.workload for row in rows())
    assert 0.02 < wrong < 0.2
    assert all(0.0 <= row.copy_ratio <= 1.0 for row in rows())


def test_believed_copy_ratios_are_in_the_order_of_the_true_ones() -> None:
    by_class = defaultdict(list)
    for row in rows():
        by_class[row.workload].append(row.believed.copy_ratio.expected)
    assert mean(by_class[Workload.EDIT]) > 0.5 > 0.3 > mean(by_class[Workload.CHAT])


def test_shares_are_shares_of_output_tokens() -> None:
    tokens: Counter[Workload] = Counter()
    for request in requests(MIX, 50.0, 1):
        tokens[request.workload] += request.num_output_tokens
    for workload, share in SHARES.items():
        assert tokens[workload] / tokens.total() == pytest.approx(share, abs=0.02)


def test_lengths_are_scaled_to_the_means_and_cut() -> None:
    means = mean_output_tokens(MIX)
    for workload, wanted in MIX.mean_output_tokens.items():
        assert means[workload] == pytest.approx(wanted, rel=0.1)
    short = replace(MIX, max_tokens=100)
    assert max(request.num_output_tokens for request in requests(short, 20.0, 1)) == 100


def test_the_same_requests_come_whatever_serves_them() -> None:
    other_fleet = replace(MIX, pools=(SimulatedPool(name="plain", num_workers=8),))
    assert requests(MIX, 20.0, 1) == requests(other_fleet, 20.0, 1)
    assert requests(MIX, 20.0, 1) != requests(MIX, 20.0, 2)


def test_about_half_of_the_requests_go_on_with_a_conversation_of_their_class() -> None:
    found = requests(MIX, 20.0, 1)
    classes = defaultdict(set)
    for request in found:
        classes[request.conversation].add(request.workload)
    assert len(classes) / len(found) == pytest.approx(1.0 - MIX.follow_ups, abs=0.03)
    assert all(len(of) == 1 for of in classes.values())


def test_an_application_does_one_class_of_work_and_half_of_the_conversations_are_with_one() -> None:
    classes = defaultdict(set)
    templates = {}
    for request in requests(MIX, 20.0, 1):
        classes[request.template].add(request.workload)
        assert templates.setdefault(request.conversation, request.template) == request.template
    assert classes.pop(GENERAL) == set(Workload)
    assert len(classes) == 3 * MIX.applications
    assert all(len(of) == 1 for of in classes.values())
    general = mean(template == GENERAL for template in templates.values())
    assert general == pytest.approx(1.0 - MIX.templated, abs=0.03)

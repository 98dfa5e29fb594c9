"""`speculation`: vLLM's keys by vLLM's rules, and what replaced those it removed."""

import pytest

from paceline.core.types import Speculation
from paceline.errors import ConfigurationError
from paceline.settings import parse
from paceline.settings.speculation import SpeculationSection
from paceline.settings.speculation_checks import _METHODS_OF_KEY

SCHEDULE = "num_speculative_tokens_per_batch_size"


def speculation(written: str) -> Speculation | None:
    text = f"models:\n- name: m\n  pools:\n  - name: p\n    workers: [{{url: http://a}}]\n{written}"
    return parse(text, {}, name="f").models[0].pools[0].speculation


def problems(written: str) -> tuple[str, ...]:
    """What is wrong with `written`, without file, line 6 and the path of `speculation`."""
    with pytest.raises(ConfigurationError) as caught:
        speculation(f"    speculation: {{{written}}}")
    return tuple(
        problem.removeprefix("f:6: models[0].pools[0].speculation.")
        for problem in caught.value.problems
    )


@pytest.mark.parametrize("written", ["", "    speculation: null", "    speculation:"])
def test_a_plain_pool(written: str) -> None:
    assert speculation(written) is None


@pytest.mark.parametrize(
    ("written", "method", "tokens", "options"),
    [
        ("method: ngram, num_speculative_tokens: 5", "ngram", 5, {}),
        (
            "method: ngram_gpu, num_speculative_tokens: 4, prompt_lookup_min: 2",
            "ngram_gpu",
            4,
            {"prompt_lookup_min": 2},
        ),
        ("method: ngram, model: ngram, num_speculative_tokens: 1", "ngram", 1, {"model": "ngram"}),
        ("method: suffix", "suffix", 24, {}),
        (
            "method: suffix, suffix_decoding_max_tree_depth: 8",
            "suffix",
            8,
            {"suffix_decoding_max_tree_depth": 8},
        ),
        ("method: suffix, num_speculative_tokens: 16", "suffix", 16, {}),
        (
            "method: eagle3, model: org/head, num_speculative_tokens: 3, revision: null",
            "eagle3",
            3,
            {"model": "org/head"},
        ),
        ("method: mtp, num_speculative_tokens: 1", "mtp", 1, {}),
        ("method: dspark, num_speculative_tokens: 7, dspark_draft_topk: 8", "dspark", 7,
         {"dspark_draft_topk": 8}),
        (
            "method: draft_model, model: small, num_speculative_tokens: 4, parallel_drafting: true,"
            " draft_sample_method: probabilistic",
            "draft_model",
            4,
            {"model": "small", "parallel_drafting": True, "draft_sample_method": "probabilistic"},
        ),
        (
            "method: custom_class, model: pkg.mod.Proposer, num_speculative_tokens: 2",
            "custom_class",
            2,
            {"model": "pkg.mod.Proposer"},
        ),
        (
            "method: mtp, num_speculative_tokens: 3, rejection_sample_method: fly,"
            " fly_window_size: 2",
            "mtp",
            3,
            {"rejection_sample_method": "fly", "fly_window_size": 2},
        ),
        (
            f"method: ngram, num_speculative_tokens: 4, {SCHEDULE}: [[1, 8, 4], [9, 512, 0]]",
            "ngram",
            4,
            {SCHEDULE: [[1, 8, 4], [9, 512, 0]]},
        ),
    ],
)  # fmt: skip
def test_what_is_written_is_kept_in_vllms_names(
    written: str, method: str, tokens: int, options: dict[str, object]
) -> None:
    assert speculation(f"    speculation: {{{written}}}") == Speculation(
        method=method, num_speculative_tokens=tokens, options=options
    )


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("num_speculative_tokens: 3", "method: required, but missing"),
        ("method: ngram", "num_speculative_tokens: required, but missing"),
        ("method: ngrm, num_speculative_tokens: 3", 'method: unknown method "ngrm"; did you mean'),
        ("method: ngram, num_speculative_tokens: 0", "num_speculative_tokens: must be at least 1"),
        ("method: ngram, num_speculative_tokens: true", "num_speculative_tokens: must be a whole"),
        (
            "method: ngram, num-speculative-tokens: 3",
            "num-speculative-tokens: unknown key; did you",
        ),
        (
            "method: eagle3, num_speculative_tokens: 3",
            "model: required by method eagle3: the draft",
        ),
        ("method: custom_class, num_speculative_tokens: 3", "model: required by method custom_cl"),
        (
            "method: custom_class, model: a/b, num_speculative_tokens: 3",
            'model: must be an import path such as "my_package.MyProposer"',
        ),
        (
            "method: ngram, model: small, num_speculative_tokens: 3",
            "model: has no effect with method ngram, which needs no model",
        ),
        (
            "method: ngram, num_speculative_tokens: 3, prompt_lookup_min: 5, prompt_lookup_max: 4",
            "prompt_lookup_min: is 5, more than prompt_lookup_max, which is 4",
        ),
        (
            "method: ngram, num_speculative_tokens: 3, prompt_lookup_max: 0",
            "prompt_lookup_max: must be at least 1, not 0",
        ),
        (
            "method: mtp, num_speculative_tokens: 3, prompt_lookup_max: 4",
            "prompt_lookup_max: has no effect with method mtp, only with ngram, ngram_gpu",
        ),
        (
            "method: ngram, num_speculative_tokens: 3, draft_sample_method: probabilistic",
            "draft_sample_method: has no effect with method ngram, only with custom_class",
        ),
        (
            f"method: suffix, {SCHEDULE}: [[1, 8, 4]]",
            f"{SCHEDULE}: has no effect with method suffix",
        ),
        (
            "method: suffix, suffix_decoding_min_token_prob: 2",
            "suffix_decoding_min_token_prob: mus",
        ),
        (
            "method: draft_model, model: a, num_speculative_tokens: 3,"
            " use_heterogeneous_vocab: true, use_local_argmax_reduction: true",
            "use_local_argmax_reduction: cannot be used with use_heterogeneous_vocab",
        ),
        (
            "method: draft_model, model: a, num_speculative_tokens: 3,"
            " use_heterogeneous_vocab: true, draft_sample_method: probabilistic",
            "use_heterogeneous_vocab: needs draft_sample_method: greedy",
        ),
        (
            "method: mtp, num_speculative_tokens: 1, rejection_sample_method: fly",
            "rejection_sample_method: fly needs num_speculative_tokens of at least 2",
        ),
        (
            "method: mtp, num_speculative_tokens: 3, rejection_sample_method: fly,"
            " fly_window_size: 3",
            "fly_window_size: must be less than num_speculative_tokens, which is 3",
        ),
        (
            "method: mtp, num_speculative_tokens: 3, fly_window_size: 2",
            "fly_window_size: has no effect without rejection_sample_method: fly",
        ),
        (
            "method: mtp, num_speculative_tokens: 3, rejection_sample_method: synthetic",
            "rejection_sample_method: synthetic accepts drafts by chance, which changes the text;",
        ),
        (
            "method: mtp, num_speculative_tokens: 3, synthetic_acceptance_length: 2.5",
            "synthetic_acceptance_length: synthetic acceptance is for benchmarks, not for serving",
        ),
        (
            "method: mtp, num_speculative_tokens: 3, rejection_sample_method: strict",
            'rejection_sample_method: strict was renamed in vLLM 0.21; write "standard"',
        ),
    ],
)
def test_refused(written: str, problem: str) -> None:
    (found,) = problems(written)

    assert found.startswith(problem)


@pytest.mark.parametrize("written", ["none", "false", '"off"', "None", "disabled", "plain"])
def test_no_speculation_is_written_as_null(written: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        speculation(f"    speculation: {written}")

    (found,) = caught.value.problems
    assert found.startswith(
        "f:6: models[0].pools[0].speculation: write null for a pool that does not speculate, not "
    )


def test_a_method_alone_is_no_speculation() -> None:
    with pytest.raises(ConfigurationError) as caught:
        speculation("    speculation: ngram")

    assert caught.value.problems == (
        "f:6: models[0].pools[0].speculation: must be a mapping such as "
        '{method: ngram, num_speculative_tokens: 5}, not "ngram"',
    )


@pytest.mark.parametrize("written", ["none", "null", "false", '"off"'])
def test_a_method_that_is_none(written: str) -> None:
    assert problems(f"method: {written}, num_speculative_tokens: 3") == (
        "method: needs a method; write speculation: null for a pool that does not speculate",
    )


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("tensor_paralel_size", 'unknown key; did you mean "draft_tensor_parallel_size"?'),
        ("synthetic_acceptance_length_", "unknown key"),
    ],
)
def test_no_key_is_proposed_that_would_be_refused(key: str, message: str) -> None:
    assert problems(f"method: mtp, num_speculative_tokens: 3, {key}: 1") == (f"{key}: {message}",)


@pytest.mark.parametrize(
    ("key", "replacement"),
    [
        ("disable_by_batch_size", f"removed in vLLM 0.17; use {SCHEDULE} with 0 tokens above"),
        ("acceptance_method", "removed from vLLM; use rejection_sample_method"),
        ("posterior_threshold", "removed from vLLM; use rejection_sample_method"),
        ("disable_logprobs", "removed from vLLM; nothing replaces it"),
        ("speculative_token_tree", "removed from vLLM; nothing replaces it"),
        ("speculative_model", "removed from vLLM; use model"),
        ("ngram_prompt_lookup_max", "removed from vLLM; use prompt_lookup_max"),
        ("adaptive_verification", "vLLM's key is enable_adaptive_verification"),
        ("tensor_parallel_size", "vLLM refuses it here; use draft_tensor_parallel_size"),
    ],
)
def test_a_key_that_vllm_removed_says_what_replaced_it(key: str, replacement: str) -> None:
    (found,) = problems(f"method: ngram, num_speculative_tokens: 3, {key}: 1")

    assert found.startswith(f"{key}: {replacement}")


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("medusa", "medusa was removed in vLLM 0.33"),
        ("mlp_speculator", "mlp_speculator was removed in vLLM 0.33"),
        ("extract_hidden_states", "extract_hidden_states extracts data and drafts nothing"),
        ("deepseek_mtp", 'the names of models\' own MTP are deprecated in vLLM; write "mtp"'),
    ],
)
def test_a_method_that_cannot_serve(method: str, message: str) -> None:
    (found,) = problems(f"method: {method}, num_speculative_tokens: 3")

    assert found.startswith(f"method: {message}")


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("[[2, 8, 4]]", ["[0]: starts at 2; the first range must start at 1"]),
        ("[[0, 8, 4]]", ["[0]: starts at 0; batch sizes start at 1"]),
        ("[[1, 8, 4], [33, 64, 2]]", ["[1]: leaves a gap: batch sizes 9 to 32 are in no range, and "
                                      "vLLM would go on with 4 tokens there"]),
        ("[[1, 8, 4], [8, 64, 2]]", ["[1]: overlaps: 8 to 64 and 1 to 8"]),
        ("[[1, 8, 4], [20, 30, 2], [9, 19, 1]]",
         ["[1]: leaves a gap: batch sizes 9 to 19 are in no range, and vLLM would go on with 4 "
          "tokens there", "[2]: is out of order: 9 to 19 comes after 20 to 30"]),
        ("[[1, 0, 4]]", ["[0]: ends at 0, before it starts at 1"]),
        ("[[1, 8, 5]]", ["[0][2]: is 5, more than num_speculative_tokens, which is 4"]),
        ("[[1, 8, -1]]", ["[0][2]: must be at least 0, not -1"]),
        ("[[1, 8]]", ["[0]: must be [first batch size, last, tokens], three whole numbers"]),
        ("[[1, 8, true]]", ["[0]: must be [first batch size, last, tokens], three whole numbers"]),
        ("[]", [": must be a list of [first batch size, last, tokens]"]),
        ('{"1-8": 4}', [": must be a list of [first batch size, last, tokens]"]),
    ],
)  # fmt: skip
def test_a_schedule_must_mean_what_it_says(schedule: str, expected: list[str]) -> None:
    found = problems(f"method: ngram, num_speculative_tokens: 4, {SCHEDULE}: {schedule}")

    assert [problem.removeprefix(SCHEDULE) for problem in found] == expected


def test_one_mistake_does_not_hide_the_others() -> None:
    assert problems(
        "method: ngrm, num_speculative_tokens: 2, prompt_lookup_min: 5, prompt_lookup_max: 4,"
        f" {SCHEDULE}: [[1, 8, 3]]"
    ) == (
        'method: unknown method "ngrm"; did you mean "ngram"?',
        "prompt_lookup_min: is 5, more than prompt_lookup_max, which is 4",
        f"{SCHEDULE}[0][2]: is 3, more than num_speculative_tokens, which is 2",
    )


def test_the_table_of_methods_names_keys_that_there_are() -> None:
    assert _METHODS_OF_KEY.keys() <= SpeculationSection.model_fields.keys()

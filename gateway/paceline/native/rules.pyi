from collections.abc import Sequence
from types import ModuleType

from paceline.core.rules import Rule, RuleOutcome
from paceline.core.types import Caller, Classification, RequestFeatures

def configure(law: ModuleType, types: ModuleType) -> None: ...
def outcome_of(
    rules: Sequence[Rule],
    features: RequestFeatures,
    classification: Classification,
    caller: Caller,
    allowed: frozenset[str],
) -> RuleOutcome: ...

from collections.abc import Sequence
from types import ModuleType

from paceline.core.beliefs import Outlook
from paceline.core.choose import Adaptive
from paceline.core.offers import Offer
from paceline.core.pool_belief import Drafting
from paceline.core.types import Choice, PoolSnapshot, Reason, Terms

def configure(offers: ModuleType, law: ModuleType, types: ModuleType) -> None: ...
def choose(
    pools: Sequence[PoolSnapshot],
    outlook: Outlook,
    adaptive: Adaptive,
    default_pool: str,
    preferred: str | None = None,
) -> tuple[Choice, Reason]: ...
def best(offer: Offer) -> Terms: ...
def confidence(chosen: Terms, default: Terms, ours: Drafting, theirs: Drafting) -> float: ...

from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType

from paceline.core.copying import LogOdds
from paceline.core.judge import Weight

def configure(law: ModuleType, least_log: float) -> None: ...
def judge(
    signals: Iterable[str],
    weights: Mapping[str, Weight],
    bias: Weight,
    band: int,
    share: Sequence[float],
) -> tuple[LogOdds, float, float]: ...

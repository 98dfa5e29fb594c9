from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType

from paceline.core.classify import Model
from paceline.core.copying import LogOdds
from paceline.core.judge import Weight
from paceline.core.types import Classification, CopyRatio, Material, RequestFeatures, Workload

def configure(law: ModuleType, least_log: float) -> None: ...
def judge(
    signals: Iterable[str],
    weights: Mapping[str, Weight],
    bias: Weight,
    band: int,
    share: Sequence[float],
) -> tuple[LogOdds, float, float]: ...
def configure_classes(
    law: Callable[..., Classification],
    model: Model,
    materials: tuple[Material, ...],
    sizes: tuple[int, ...],
    classes: tuple[Workload, ...],
    mixture: Callable[[int, float, int], CopyRatio],
    steps: float,
    features: type,
    view: type,
    classification: type,
    evidence: type,
    /,
) -> None: ...
def classify(features: RequestFeatures, model: Model = ...) -> Classification: ...

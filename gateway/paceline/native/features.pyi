from collections.abc import Callable, Mapping
from types import ModuleType

from paceline.core.look import Look
from paceline.core.types import RequestFeatures, RequestView

def configure(
    law: Callable[[RequestView], RequestFeatures],
    look: Callable[[str, bool], Look],
    system_signals: Callable[[str], tuple[str, ...]],
    types: ModuleType,
    numbers: Mapping[str, int],
) -> None: ...
def measure(view: RequestView) -> RequestFeatures: ...

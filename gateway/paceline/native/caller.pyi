from collections.abc import Mapping
from types import ModuleType
from typing import Any

from paceline.core.types import Caller, RequestView

def configure(law: ModuleType, types: ModuleType) -> None: ...
def caller_of(
    view: RequestView,
    body: Mapping[str, Any],
    headers: Mapping[str, str],
    key_name: str | None,
    model: str,
    request_id: str = "",
    with_template: bool = False,
) -> Caller: ...

"""Who answers what every request asks: the compiled twin where it was built, else its law.

The law is Python, is what the rest of the core describes, and gives the same results; see
`paceline/native/`. Nothing else chooses between the two.
"""

from __future__ import annotations

from paceline.core import copying, offers
from paceline.core import judge as judging

__all__ = ["IS_COMPILED", "best", "confidence", "judge"]

try:
    from paceline.native import costs, judgement
except ImportError:
    IS_COMPILED = False
    best, confidence, judge = offers.best, offers.confidence, judging.judge
else:
    IS_COMPILED = True
    costs.configure(offers)
    judgement.configure(judging, copying.LEAST_LOG)
    best, confidence, judge = costs.best, costs.confidence, judgement.judge

"""Individual DP, answers rounded to whole numbers (Section "rounding")."""

from __future__ import annotations

from typing import Final

from thinveil.language.claim import Mechanism
from thinveil.language.mechanisms.idp import idp

MECHANISM: Final = Mechanism(
    "idp-integer", "Individual DP, answers rounded to whole numbers", idp, post="integer"
)

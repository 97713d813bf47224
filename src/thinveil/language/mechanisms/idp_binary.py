"""Individual DP, answers rounded to 0 or 1 (Section "rounding")."""

from __future__ import annotations

from typing import Final

from thinveil.language.claim import Mechanism
from thinveil.language.mechanisms.idp import idp

MECHANISM: Final = Mechanism(
    "idp-binary", "Individual DP, answers rounded to 0 or 1", idp, post="binary"
)

"""Individual DP with noise in every answer (Section "Ensuring all answers are noisy")."""

from __future__ import annotations

from typing import Final

from thinveil.language.claim import Mechanism
from thinveil.language.mechanisms.idp import idp

USUAL_OFFSET: Final = 1.0
"""The offset a of that section."""

MECHANISM: Final = Mechanism(
    "idp-noisy", "Individual DP with noise in every answer", idp, offset=USUAL_OFFSET
)

"""How many files of the project a round of an attack walks through, between two batches.

    PYTHONPATH=src python tools/entered.py [STRATEGY] [MECHANISM]

A file counts if one of its functions is entered between the moment a batch is answered and the
moment the next one is asked. Printed are the median and the most over all rounds, and the files of
the round that enters most.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any

import thinveil

ROOT = Path(thinveil.__file__).parent


class Watched:
    """A target that notes which files were entered since it answered last."""

    def __init__(self, target: Any) -> None:
        self._target = target
        self.facts = target.facts
        self.entered: set[str] = set()
        self.rounds: list[set[str]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def answer(self, batch: Any) -> Any:
        """Answer a batch; what was entered on the way to it is one round."""
        sys.setprofile(None)
        self.rounds.append(self.entered)
        self.entered = set()
        answers = self._target.answer(batch)
        sys.setprofile(self._note)
        return answers

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(ROOT)):
            self.entered.add(frame.f_code.co_filename)


def main(strategy: str = "adaptive", mechanism: str = "idp") -> None:
    """Attack the embedded people and print what was entered."""
    claim = thinveil.claim_named(mechanism)
    target = Watched(thinveil.Curator(thinveil.people(200), claim, seed=0))
    try:
        thinveil.audit(target, strategy=strategy)
    finally:
        sys.setprofile(None)
    rounds = target.rounds[1:]  # before the first batch everything is set up
    most = max(rounds, key=len)
    counts = [len(each) for each in rounds]
    print(f"{len(rounds)} rounds: median {median(counts):g} files, at most {len(most)}")
    for name in sorted(most):
        print(f"  {Path(name).relative_to(ROOT)}")


if __name__ == "__main__":
    main(*sys.argv[1:])

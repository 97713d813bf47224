"""Reading the zones of a whole batch, with as many answers as that takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from thinveil.attacker.evidence.error_budget import Care
from thinveil.attacker.evidence.fixed import settling
from thinveil.attacker.evidence.likelihood import zones
from thinveil.attacker.evidence.reading import risky
from thinveil.attacker.evidence.rephrasing import varied
from thinveil.attacker.terms import Attack
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Codes, QueryBatch


def zones_of(facts: PublicFacts, batch: QueryBatch, care: Care) -> Attack[Codes]:
    """Ask a batch and return the zone of each question.

    Where single answers do not tell, each question is asked again until its zone is sure
    enough; only those that are not sure yet are asked again.
    """
    if facts.claim.reads_exactly:
        answers = yield batch
        return np.array(zones(facts.claim, answers), np.int64)
    found = np.zeros(batch.questions, np.int64)
    left = np.arange(batch.questions)
    tally = settling(facts, care)
    tally.begin(np.ones(batch.questions, np.bool_))
    while len(left):
        part = batch if len(left) == batch.questions else batch.some(left)
        repeats = tally.repeats()
        part = replace(part, about=risky(part.about, care))
        if facts.policies.cache:
            assert part.offsets is None, "unions cannot be put in new words"
            asks = varied(facts, part, repeats, care)
        else:
            asks = replace(part, repeats=repeats)
        answers = yield asks
        decided, zone = tally.add(part.threshold, answers, repeats)
        found[left[decided]] = np.array(zone, np.int64)[decided]
        left = left[~decided]
        tally.keep(~decided)
        tally.begin(np.zeros(len(left), np.bool_))
    return found

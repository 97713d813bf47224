"""What an audit has to say: what was recovered, at what cost, against what baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from thinveil.attacker.code_length import CodeLength
from thinveil.attacker.evidence.error_budget import SEQUENTIAL
from thinveil.attacker.findings import (
    ColumnsFound,
    CountFound,
    Found,
    PeopleFound,
    PersonFound,
    TableFound,
)
from thinveil.auditing.driver import Run
from thinveil.auditing.options import Options
from thinveil.auditing.provenance import Provenance
from thinveil.auditing.trace import Look, shares
from thinveil.curator.tables.inferring import doubts
from thinveil.errors import EXIT_COMPLETE, EXIT_EARLY, EXIT_ERROR
from thinveil.language.facts import PublicFacts
from thinveil.verdicts.accuracy import Accuracy
from thinveil.verdicts.bounds import Bounds
from thinveil.verdicts.membership import Trial
from thinveil.verdicts.phrases import many, spelled
from thinveil.verdicts.scoring import Score
from thinveil.verdicts.staircase import Staircase

NO_CODE: Final = CodeLength(None, None, {})
"""The code length of nothing."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of an audit.

    Args:
        options: What was asked for.
        facts: What the attacker was assumed to know.
        run: What was asked, answered and found.
        score: Reconstruction against truth; None without truth or for other attacks.
        result: What an attack other than on the whole data set found, as plain values.
        seconds: How long it took.
        seed: The seed of the noise; None where the target draws its own.
        transcript: Where the transcript is kept, if it is.
        notice: Something the user should know about how the run went.
        code: What was found in bits, and which beliefs that rests on.
        bounds: What could not be beaten; None where there is no true table at hand.
        network: How long round trips took and what the target's own ledger says, where it is
            behind a network.
        accuracy: How much is right, beside both baselines; None where there is no truth.
        membership: What trials of membership showed, where some were asked for.
        looks: What had been rebuilt after so many questions.
        staircase: Answers about one predicate, for a picture, where they were asked for.
        provenance: Versions, the command, and a hash of what was asked and answered.
        derived: Whether steps and lists of categories were taken from the table itself.
    """

    options: Options
    facts: PublicFacts
    run: Run[Found | None]
    score: Score | None
    result: Any
    seconds: float
    seed: int | None
    transcript: str | None = None
    notice: str = ""
    code: CodeLength = NO_CODE
    bounds: Bounds | None = None
    network: Mapping[str, Any] | None = None
    accuracy: Accuracy | None = None
    membership: Trial | None = None
    looks: tuple[Look, ...] = ()
    staircase: Staircase | None = None
    provenance: Provenance | None = None
    derived: bool = False

    @property
    def exit_code(self) -> int:
        """0 where the attack ran to its end, 3 where it ended early, 1 where the target died."""
        if self.run.ending in ("complete", "undecided"):
            stopped = self.membership is not None and self.membership.interrupted
            return EXIT_EARLY if stopped else EXIT_COMPLETE
        return EXIT_ERROR if self.run.ending == "target" else EXIT_EARLY

    @property
    def strategy(self) -> str:
        """The strategy that was used."""
        return self.options.strategy_for(self.facts.claim)

    @property
    def error_probability(self) -> float:
        """A bound on the chance that anything was decided wrongly."""
        return min(1.0, self.run.meter.error.total + self.run.meter.risk)

    @property
    def epsilon_claimed(self) -> float | None:
        """The claimed privacy loss of everything that was answered."""
        return float(self.run.spent) if self.facts.claim.protected else None

    @property
    def bits(self) -> float | None:
        """The length in bits of a message that says what was found; None where nothing was.

        Under the attack's own beliefs where it has some, else under even ones.
        """
        return self.code.total

    @property
    def bits_by_attribute(self) -> dict[str, float]:
        """The same for each attribute that was searched, given those found before it."""
        names = self.facts.schema.names
        return {names[column]: bits for column, bits in sorted(self.code.columns.items())}

    @property
    def bits_basis(self) -> str:
        """In a phrase, the beliefs that the bits rest on."""
        if self.code.learned:
            return "by what the attack believed while it asked"
        if not self.code.columns:
            return "every outcome taken as equally likely"
        limits = "; limits as found where not public" if self.code.unlimited else ""
        return f"all public values taken as equally likely{limits}"

    @property
    def questions_per_bit(self) -> float | None:
        """Answers asked for each bit of what was found; None where no bit was."""
        return self.run.meter.queries / self.bits if self.bits else None

    @property
    def questions_per_bit_by_attribute(self) -> dict[str, float | None]:
        """The same for each attribute; None where it has no bits, or questions were repeated.

        Questions that narrow no attribute are left out.
        """
        meter, asked = self.run.meter, self.run.meter.by_column.tolist()
        once = meter.queries == meter.questions
        return {
            self.facts.schema.names[column]: asked[column] / bits if bits and once else None
            for column, bits in sorted(self.code.columns.items())
        }

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        bits, per_bit = self.bits_by_attribute, self.questions_per_bit_by_attribute
        meter, score, names = self.run.meter, self.score, self.facts.schema.names
        return {
            "mechanism": self.facts.claim.name,
            "k": self.facts.claim.k,
            "universe": self.facts.claim.universe,
            "strategy": self.strategy,
            "attack": self.options.attack,
            "records": self.facts.records,
            "attributes": list(names),
            "queries": meter.queries,
            "questions": meter.questions,
            "rounds": meter.rounds,
            "trivial_questions": meter.trivial,
            "questions_by_attribute": dict(zip(names, meter.by_column[:-1].tolist(), strict=True)),
            "bits": self.bits,
            "bits_basis": None if self.bits is None else self.bits_basis,
            "bits_by_attribute": bits,
            "questions_per_bit": self.questions_per_bit,
            "questions_per_bit_by_attribute": per_bit,
            "bounds": None if self.bounds is None else self.bounds.to_plain(),
            "epsilon_claimed": self.epsilon_claimed,
            "budget": self.options.schedule(self.facts.claim).describe(),
            "epsilons": [float(each) for each in self.options.epsilons] or None,
            "error_probability": self.error_probability,
            "noise_test": None
            if self.facts.claim.reads_exactly or self.strategy == "posterior"
            else self.options.test or SEQUENTIAL,
            "error_wanted": None if self.facts.claim.reads_exactly else float(self.options.error),
            "answers_a_question": meter.queries / max(meter.questions, 1),
            "records_recovered": None if score is None else score.recovered,
            "records_guessed": None if score is None else score.guessed,
            "exact": None if score is None else score.exact,
            "distinct_only": not self.facts.claim.counts,
            "precision": dict(self.options.precision),
            "by_attribute": None
            if score is None
            else [
                {
                    "name": each.name,
                    "recovered": each.recovered,
                    "guessed": each.guessed,
                    "of": each.of,
                    "bits": bits.get(each.name),
                    "questions_per_bit": per_bit.get(each.name),
                }
                for each in score.attributes
            ],
            "result": self.result,
            "ended": self.run.ending,
            "reason": self.run.reason,
            "verdict": self.sentence(),
            "notice": self.notice,
            "seconds": round(self.seconds, 3),
            "seed": self.seed,
            "transcript": self.transcript,
            "network": None if self.network is None else dict(self.network),
            "assumed_public": self.assumed_public(),
            "doubts": self.doubts(),
            "accuracy": None if self.accuracy is None else self.accuracy.to_plain(),
            "membership": None if self.membership is None else self.membership.to_plain(),
            "trace": self._trace(),
            "staircase": None if self.staircase is None else self.staircase.to_plain(),
            "provenance": None
            if self.provenance is None
            else self.provenance.to_plain(self.options.plain()),
        }

    def _trace(self) -> list[dict[str, Any]] | None:
        """Return what was rebuilt after so many questions, as shares."""
        found = self.run.found
        if not isinstance(found, TableFound):
            return None
        records = int(found.counts.sum()) if found.distinct else self.facts.records
        return shares(self.looks, records, len(found.columns))

    def assumed_public(self) -> list[str]:
        """List what the attacker was assumed to know, and where that comes from."""
        taken = "no schema was given: kinds, steps and lists of values were taken from the table"
        return self.facts.assumed_public() + [taken] * self.derived

    def doubts(self) -> list[str]:
        """Say where an inferred schema makes more public than its owner may have meant."""
        return doubts(self.facts.schema, self.facts.records) if self.derived else []

    def sentence(self) -> str:
        """Say the outcome in a plain sentence or two."""
        if self.options.trials_only and self.membership is not None:
            return self.membership.sentence()
        claimed = self.epsilon_claimed
        claim = (
            "and the mechanism claims no protection"
            if claimed is None
            else f"while the mechanism claims a privacy loss of {spelled(claimed)}"
        )
        precise = " (at the chosen precision)" if self.options.precision else ""
        parts = [
            f"{self._learned()}{precise} from {many(self.run.meter.queries, 'answer')}, {claim}."
        ]
        if self.run.ending == "undecided":
            parts = [
                f"{self.run.reason[:1].upper()}{self.run.reason[1:]}. {parts[0]}",
            ]
        score = self.score
        if score is not None and score.recovered and score.guessed >= score.recovered:
            parts.append(
                f"But guessing from the public facts alone gets {score.guessed:,} as well: here it "
                "is the public list of values that gives the table away."
            )
        results = self.result if isinstance(self.result, list) else [self.result or {}]
        if any(each.get("correct") is False for each in results):
            parts.append("Checked against the table, part of this is wrong.")
        if self.run.ending not in ("complete", "undecided"):
            parts.append(f"The run ended early: {self.run.reason}.")
        return " ".join(parts)

    def _learned(self) -> str:
        found, score, records = self.run.found, self.score, self.facts.records
        if self.run.ending == "undecided" and _is_nothing(found):
            return "An outsider learned nothing"
        if isinstance(found, TableFound) and found.distinct:
            return self._which(found)
        if isinstance(found, TableFound):
            if score is None:
                whole = int(found.counts[found.known == len(found.columns)].sum())
                return f"An outsider rebuilt {whole:,} of {many(records, 'record')}"
            if score.exact:
                return f"An outsider recovered all {many(records, 'record')} exactly"
            return f"An outsider recovered {score.recovered:,} of {many(records, 'record')}"
        if isinstance(found, ColumnsFound) and found.columns:
            names = ", ".join(self.facts.schema[each.column].name for each in found.columns)
            judged = {each["exact"] for each in self.result}
            if judged == {None}:
                part = "" if self.run.ending == "complete" else "part of "
                return f"An outsider rebuilt {part}the column {names}"
            how = "exactly" if judged == {True} else "in part"
            return f"An outsider recovered the column {names} {how}"
        if isinstance(found, CountFound) and found.count is None and found.exists:
            return "An outsider learned that there is a record that matches,"
        if isinstance(found, CountFound) and found.count is not None:
            verb = "matches" if found.count == 1 else "match"
            return f"An outsider learned that {many(found.count, 'record')} {verb}"
        if isinstance(found, PeopleFound) and found.people:
            return f"An outsider learned {self._about_people(found)}"
        return "An outsider learned nothing yet"

    def _which(self, found: TableFound) -> str:
        """Say which records were found where how often they occur cannot be."""
        score = self.score
        if score is None:
            whole = int(found.counts[found.known == len(found.columns)].sum())
            return f"An outsider found {many(whole, 'different record')}"
        if score.exact:
            return (
                f"An outsider recovered the distinct set of {many(score.records, 'record')} "
                "exactly (how often each occurs is not shown)"
            )
        return f"An outsider recovered {score.recovered:,} of {score.records:,} different records"

    def _about_people(self, found: PeopleFound) -> str:
        """Say what was learned of people; of those not settled yet, nothing is said."""
        attack = self.options.attack
        field = {"membership": "present", "uniqueness": "unique"}.get(attack, "matches")
        field = field if self.facts.claim.counts else "present"
        people = [person for person in found.people if getattr(person, field) is not None]
        if not people:
            return "nothing yet"
        alone = people[0] if len(found.people) == 1 else None
        all_of_them = many(len(people), "person", "people")
        if attack == "membership":
            if alone is not None:
                who = "somebody who fits" if alone.present else "nobody who fits"
                return f"that {who} is in the table"
            present = sum(person.present is True for person in people)
            return f"that {present:,} of {all_of_them} are in the table"
        if attack == "uniqueness":
            given = ", presence taken as given," if self.options.present else ""
            if alone is not None:
                return f"that the person is{given} {'' if alone.unique else 'not '}unique"
            unique = sum(person.unique is True for person in people)
            return f"that{given} {unique:,} of {all_of_them} are unique"
        if not self.facts.claim.counts:
            fitting = sum(person.present is True for person in people)
            return f"the values that occur among the records that fit {fitting:,} of {all_of_them},"
        if alone is not None:
            values = many(len(alone.values), "attribute")
            if not alone.matches:
                return "that nobody in the table fits"
            if alone.matches == 1:
                return f"{values} of the person"
            return f"the values of {values} among the {alone.matches:,} records that fit"
        there = [person for person in people if person.values]
        unique = sum(person.matches == 1 for person in there)
        return (
            f"attributes of {len(there):,} of {all_of_them}, "
            f"{unique:,} of them alone in what was known of them,"
        )


def _is_nothing(found: Found | None) -> bool:
    """Tell whether nothing at all was settled."""
    if isinstance(found, TableFound):
        return not found.known.any()
    if isinstance(found, ColumnsFound):
        return not found.columns
    if isinstance(found, CountFound):
        return found.count is None and found.exists is None
    if isinstance(found, PeopleFound):
        return all(person == PersonFound() for person in found.people)
    return True

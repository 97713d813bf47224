"""What an audit has to say: what was recovered, at what cost, against what baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Final

import numpy as np

from thinveil.attacker.care import SEQUENTIAL
from thinveil.attacker.codelength import CodeLength
from thinveil.attacker.found import (
    ColumnFound,
    ColumnsFound,
    CountFound,
    Found,
    PeopleFound,
    PersonFound,
    TableFound,
)
from thinveil.attacker.search import Values
from thinveil.audit.bounds import Bounds
from thinveil.audit.driver import Run
from thinveil.audit.options import Options
from thinveil.audit.scoring import Score, coarse
from thinveil.curator.dataset import Dataset
from thinveil.errors import EXIT_COMPLETE, EXIT_EARLY, EXIT_ERROR
from thinveil.language.facts import PublicFacts
from thinveil.language.queries import Codes, Flags
from thinveil.language.schema import Schema, Value


def plain(value: Value) -> Any:
    """Return a value as JSON can hold it; decimals and dates become text."""
    return str(value) if isinstance(value, (Decimal, date)) else value


def spelled(number: float) -> str:
    """Write a small number for people: 0.0000149826, and 1.5e-12 only where that is long.

    >>> spelled(1.49826e-05), spelled(1.5e-12)
    ('0.0000149826', '1.5e-12')
    """
    if 1000 <= number < 1e15:
        return f"{number:,.0f}"
    short = f"{number:.6g}"
    return f"{Decimal(short):f}" if number == 0 or 1e-9 <= abs(number) < 1e9 else short


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

    @property
    def exit_code(self) -> int:
        """0 where the attack ran to its end, 3 where it ended early, 1 where the target died."""
        if self.run.ending in ("complete", "undecided"):
            return EXIT_COMPLETE
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
            "assumed_public": self.facts.assumed_public(),
        }

    def sentence(self) -> str:
        """Say the outcome in a plain sentence or two."""
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


def many(count: int, one: str, more: str = "") -> str:
    """Write a count with its noun.

    >>> many(1, "record"), many(2000, "record"), many(2, "person", "people")
    ('1 record', '2,000 records', '2 people')
    """
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def result_of(
    found: Found | None, options: Options, facts: PublicFacts, truth: Dataset | None
) -> Any:
    """Return what an attack found, as plain values, checked against the truth if given."""
    schema = facts.schema
    if isinstance(found, ColumnsFound):
        return [
            {
                "column": schema[each.column].name,
                "values": _values(schema, each),
                "exact": _matches(each, truth, None),
                "bits": each.bits,
            }
            for each in found.columns
        ]
    if isinstance(found, CountFound):
        return {
            "predicate": dict(options.people[0]),
            "count": found.count,
            **({} if facts.claim.counts else {"exists": found.exists}),
            "correct": _right(found, truth, options, facts),
            "bits": found.bits,
        }
    if isinstance(found, PeopleFound):
        people = []
        fitting = None if truth is None else _fitting(facts, truth, options)
        for number, (known, person) in enumerate(zip(options.people, found.people, strict=True)):
            entry: dict[str, Any] = {"known": dict(known), "correct": None, "bits": person.bits}
            if fitting is not None and person != PersonFound():
                rows = fitting[number]
                entry["correct"] = _fits(person, len(rows)) and all(
                    _matches(each, truth, rows) for each in person.values
                )
            for name in ("present", "unique", "matches"):
                assumed = name == "present" and options.present
                if getattr(person, name) is not None and not assumed:
                    entry[name] = getattr(person, name)
            if options.attack == "attribute":
                entry["values"] = {
                    schema[each.column].name: _values(schema, each) for each in person.values
                }
                entry["prior_failed"] = [schema[each].name for each in person.prior_failed]
            people.append(entry)
        return people
    return None


def _right(
    found: CountFound, truth: Dataset | None, options: Options, facts: PublicFacts
) -> bool | None:
    """Tell whether a count, or what is known instead of one, is right."""
    if truth is None or (found.count is None and found.exists is None):
        return None
    true = int(_inside(truth, options, facts).sum())
    if found.count is not None:
        return found.count == true
    return found.exists is (true > 0)


def _values(schema: Schema, found: ColumnFound) -> list[dict[str, Any]]:
    attribute = schema[found.column]
    return [
        {
            "value": plain(attribute.decode(code)),
            "records": None if found.distinct else count,
        }
        for code, count in found.values
    ]


def _inside(truth: Dataset, options: Options, facts: PublicFacts) -> Flags:
    rows = np.ones(truth.records, np.bool_)
    for column, (low, high) in options.box_of(facts).items():
        rows &= (truth.column(column) >= low) & (truth.column(column) < high)
    return rows


def _fits(person: PersonFound, matches: int) -> bool:
    """Tell whether everything said about how many records match is true."""
    said = (
        (person.present, matches > 0),
        (person.unique, matches == 1),
        (person.matches, matches),
    )
    return all(claim is None or claim == true for claim, true in said)


def _fitting(facts: PublicFacts, truth: Dataset, options: Options) -> list[list[int]]:
    """Return, for each person, the rows of the true table that fit what is known."""
    people = options.codes_of_people(facts)
    columns = list(people[0])
    rows: dict[tuple[int, ...], list[int]] = {tuple(who.values()): [] for who in people}
    for row, codes in enumerate(zip(*truth.codes[:, columns].T.tolist(), strict=True)):
        if codes in rows:
            rows[codes].append(row)
    return [rows[tuple(who[column] for column in columns)] for who in people]


def _matches(found: ColumnFound, truth: Dataset | None, rows: list[int] | None) -> bool | None:
    if truth is None:
        return None
    column: Codes = truth.column(found.column)
    if rows is not None:
        column = column[rows]
    values, counts = np.unique(coarse(column[:, None], (found.width,)), return_counts=True)
    if found.distinct:
        return [code for code, _ in found.values] == list(values.tolist())
    actual: Values = list(zip(values.tolist(), counts.tolist(), strict=True))
    return actual == found.values

"""What an audit has to say: what was recovered, at what cost, against what baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Final

from thinveil.attacker.channel import simpler
from thinveil.attacker.code_length import CodeLength
from thinveil.attacker.evidence.error_budget import SEQUENTIAL
from thinveil.attacker.findings import Found, TableFound
from thinveil.auditing.driver import Run
from thinveil.auditing.entries import confidence_of
from thinveil.auditing.options import Options
from thinveil.auditing.provenance import Provenance
from thinveil.auditing.trace import Look, shares, sizes
from thinveil.curator.tables.dataset import Dataset
from thinveil.curator.tables.reading import NO_REMARKS, Remarks
from thinveil.errors import EXIT_COMPLETE, EXIT_EARLY, EXIT_ERROR, UsageError
from thinveil.files import write_file
from thinveil.language.facts import PublicFacts
from thinveil.language.schema import Grid
from thinveil.verdicts.canaries import Canaries
from thinveil.verdicts.comparing.outcomes import Comparison
from thinveil.verdicts.comparing.risk import Risk
from thinveil.verdicts.judging.accuracy import Accuracy
from thinveil.verdicts.judging.claim_check import ClaimCheck
from thinveil.verdicts.judging.possible import Possible, possible
from thinveil.verdicts.judging.scoring import Score
from thinveil.verdicts.limits.bounds import Bounds, largest_loss
from thinveil.verdicts.membership import Trial
from thinveil.verdicts.names import ClaimRecord
from thinveil.verdicts.phrases import plain
from thinveil.verdicts.record import FORMAT, Channel, Made, Moment, Network, Record
from thinveil.verdicts.results import Example, Knowledge, Result, examples
from thinveil.verdicts.staircase import Staircase
from thinveil.verdicts.typed import from_json, to_json

_AS_HERE: Final = (
    "strategy", "bits", "bits_by_attribute", "questions_per_bit",
    "questions_per_bit_by_attribute", "bounds", "epsilon_claimed", "delta_claimed",
    "error_probability", "channel", "score", "notice", "seed", "transcript", "accuracy",
    "membership", "canaries", "possible", "claim_check",
)  # fmt: skip
"""What a record has under the same name."""
UNKNOWN: Final = "?"
"""What stands for a value that a run which ended early does not know."""
NO_CODE: Final = CodeLength(None, None, {})
"""The code length of nothing."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of an audit; without the true table there is no score, accuracy or bound.

    Args:
        options: What was asked for.
        facts: What the attacker was assumed to know.
        run: What was asked, answered and found.
        score: Reconstruction against truth; None for other attacks.
        findings: What an attack other than on the whole data set found.
        seconds: How long it took.
        seed: The seed of the noise; None where the target draws its own.
        transcript: Where the transcript is kept, if it is.
        notice: Something the user should know about how the run went.
        code: What was found in bits, and which beliefs that rests on.
        bounds: What could not be beaten.
        network: Of a target behind a network, how long trips took and what its ledger says.
        accuracy: How much is right, beside attackers who never ask.
        membership: What trials of membership showed, where some were asked for.
        canaries: What became of planted values, where some were asked for.
        looks: What had been rebuilt after so many questions.
        staircase: Answers about one predicate, for a picture, where they were asked for.
        provenance: Versions, the command, and a hash of what was asked and answered.
        derived: Whether steps and lists of categories were taken from the table itself.
        remarks: What was assumed when the table was read.
        ours: Whether the target is a curator of ours, with a mechanism of ours.
        knowledge: How much of the table is known, of an attack on the whole of it.
    """

    options: Options
    facts: PublicFacts
    run: Run[Found | None]
    score: Score | None
    findings: Result
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
    remarks: Remarks = NO_REMARKS
    canaries: Canaries | None = None
    ours: bool = False
    knowledge: Knowledge | None = None

    @property
    def exit_code(self) -> int:
        """0 where the attack ran to its end, 3 where it ended early, 1 where the target failed."""
        if self.options.check_claim and not self.run.meter.drawn and self.run.ending != "target":
            return EXIT_EARLY  # a cap left nothing to ask
        if self.run.ending in ("complete", "undecided"):
            parts = (self.membership, self.canaries)
            stopped = any(each is not None and each.interrupted for each in parts)
            return EXIT_EARLY if stopped else EXIT_COMPLETE
        return EXIT_ERROR if self.run.ending in ("broken", "target") else EXIT_EARLY

    @property
    def result(self) -> Any:
        """What an attack other than on the whole data set found, as plain values."""
        return to_json(self.findings)

    @property
    def strategy(self) -> str:
        """The strategy that was used."""
        seen = simpler(self.facts) if self.channel is not None and self.channel.used else self.facts
        return self.options.strategy_for(seen.claim)

    @property
    def channel(self) -> Channel | None:
        """What came of looking at which doubles came; None where nobody looked."""
        looked = self.run.meter.channel
        return (
            None if looked is None else Channel(self.options.channel is not None, *astuple(looked))
        )

    @property
    def error_probability(self) -> float:
        """A bound on the chance that anything was decided wrongly.

        It is 1 where a run knows something that it would have proved at its end only.
        """
        known = self.knowledge is not None and self.knowledge.bits > 0
        if known and self.run.ending != "complete" and not self.run.meter.proved:
            return 1.0
        return min(1.0, self.run.meter.error.total + self.run.meter.risk)

    @property
    def epsilon_claimed(self) -> float | None:
        """The claimed privacy loss of everything that was answered."""
        return float(self.run.spent) if self.facts.claim.protected else None

    @property
    def delta_claimed(self) -> float | None:
        """The claimed delta of everything that was answered: 0 for pure differential privacy."""
        return float(self.run.delta) if self.facts.claim.protected else None

    @property
    def claim_check(self) -> ClaimCheck | None:
        """What was seen of whether the target does what it claims; None where nobody looked."""
        meter, evidence = self.run.meter, self.run.evidence
        accusing = 1 - confidence_of(self.options.confidence)
        alone = self.options.check_claim
        return ClaimCheck.of(meter, evidence, alone=alone, ours=self.ours, accusing=accusing)

    @property
    def possible(self) -> Possible | None:
        """What the claim's law says of answers to one question, before any is asked.

        Of as many answers as the attack plans for, or had where it stayed undecided.
        """
        if self.run.ending == "broken" or self.options.check_claim:
            return None
        claim, most = self.facts.claim, self.options.most_repeats
        loss = largest_loss(self.options.schedule(claim)) if claim.protected else None
        answers = most if self.run.ending == "undecided" else None
        return possible(claim, self.facts.records, loss, answers)

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

    def record(
        self,
        comparison: Comparison | None = None,
        risk: Risk | None = None,
        records_shown: tuple[Example, ...] | None = None,
    ) -> Record:
        """Return everything as a value that can be written to a file and read again.

        Beside the run may stand what other mechanisms gave away, how risk grows with the claimed
        loss, and some records, true and recovered, where they may be shown.
        """
        meter, names, options = self.run.meter, self.facts.schema.names, self.options
        claim = self.facts.claim
        stairs = self.staircase
        made = self.provenance and to_json(self.provenance.to_plain(options.plain()))
        weighed = not claim.reads_exactly and self.strategy != "posterior"
        if self.channel is not None and self.channel.used:
            weighed = False
        return Record(
            format=FORMAT,
            claim=ClaimRecord.of(claim),
            attack=options.attack,
            records=self.facts.records,
            attributes=tuple(names),
            queries=meter.queries,
            questions=meter.questions,
            rounds=meter.rounds,
            trivial_questions=meter.trivial,
            checks=meter.checks,
            checks_questions=0 if meter.checked is None else meter.checked.questions,
            questions_by_attribute=dict(zip(names, meter.by_column[:-1].tolist(), strict=True)),
            bits_basis=None if self.bits is None else self.bits_basis,
            budget=options.schedule(claim).describe(),
            epsilons=tuple(float(each) for each in options.epsilons) or None,
            noise_test=options.test or SEQUENTIAL if weighed else None,
            error_wanted=None if claim.reads_exactly else float(options.error),
            precision=self.precision(),
            present=options.present,
            result=self.findings,
            ended=self.run.ending,
            reason=self.run.reason,
            seconds=round(self.seconds, 3),
            network=None if self.network is None else from_json(Network, dict(self.network)),
            assumed_public=tuple(self.assumed_public()),
            doubts=self.remarks.doubts,
            read_as=self.remarks.assumed,
            numbers_public=self.remarks.numbers,
            rounded_away=self.remarks.rounded_away,
            trials_wanted=options.trials,
            provenance=None if made is None else from_json(Made, made),
            comparison=comparison,
            risk=risk,
            records_shown=records_shown,
            staircase=stairs if stairs is None or records_shown else stairs.masked(),
            **self._of_table(),
            **{name: getattr(self, name) for name in _AS_HERE},
        )

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain JSON values, as `thinveil audit --json` writes them."""
        return self.record().to_plain()

    def sentence(self) -> str:
        """Say the outcome in a plain sentence or two."""
        return self.record().verdict()

    def report(
        self,
        path: str | Path,
        comparison: Comparison | None = None,
        risk: Risk | None = None,
        *,
        overwrite: bool = False,
    ) -> None:
        """Write the report of this run: the page that `thinveil report` makes of its JSON.

        No value of any record is in it.

        Args:
            path: The file; a report that is there is replaced.
            comparison: What other mechanisms gave away, to stand beside the run.
            risk: How risk grows with the claimed loss, likewise.
            overwrite: Whether any other file is replaced, too.

        Raises:
            OutputError: It cannot be written, or something else has its name.
        """
        from thinveil.report.html import page  # a layer above: tests/test_wall.py says why

        whole = page(self.record(comparison, risk))
        write_file(path, whole, kind="report", overwrite=overwrite)

    def rows(self) -> Iterator[list[Any]]:
        """Return the reconstructed table, record by record; UNKNOWN is what was not found.

        Raises:
            UsageError: The attack was not on the data set.
        """
        found, schema = self.run.found, self.facts.schema
        if not isinstance(found, TableFound):
            raise UsageError("--output: only the attack on the data set reconstructs a table")

        def row(codes: list[int], known: int) -> list[Any]:
            values = dict(zip(found.columns[:known], codes, strict=False))
            return [
                plain(attribute.decode(values[column])) if column in values else UNKNOWN
                for column, attribute in enumerate(schema)
            ]

        rows = zip(
            *(each.tolist() for each in (found.codes, found.known, found.counts)), strict=True
        )
        return (each for codes, known, count in rows for each in [row(codes, known)] * count)

    def _of_table(self) -> dict[str, Any]:
        """Return how much was rebuilt, at the end and, as shares, after so many questions."""
        found = self.run.found
        if not isinstance(found, TableFound):
            return dict.fromkeys(("records_rebuilt", "values_rebuilt", "trace"))
        whole, values = sizes(found)
        records = int(found.counts.sum()) if found.distinct else self.facts.records
        known = self.knowledge
        all_bits = None if known is None else known.of_all
        looks = shares(self.looks, records, len(found.columns), all_bits)
        trace = None if looks is None else tuple(Moment(**each) for each in looks)
        told = {"records_rebuilt": whole, "values_rebuilt": values, "trace": trace}
        if known is None:
            return told
        return told | {
            "bits_known": known.bits,
            "bits_of_all": all_bits,
            "columns_known": known.columns,
            "columns_begun": known.begun,
        }

    def examples(self, truth: Dataset | None) -> tuple[Example, ...] | None:
        """Return some records of a reconstructed table beside the true ones."""
        return examples(self.run.found, truth, self.options.seed)

    def assumed_public(self) -> list[str]:
        """List what the attacker was assumed to know, and where that comes from."""
        taken = "no schema was given: kinds, steps and lists of values were taken from the table"
        return self.facts.assumed_public() + [taken] * self.derived

    def precision(self) -> dict[str, str]:
        """Return the steps of columns that are not exact: rounded when read, or wanted so."""
        rounded = [each for each in self.facts.schema if isinstance(each, Grid) and each.rounded]
        return {each.name: str(each.step) for each in rounded} | dict(self.options.precision)

    def doubts(self) -> list[str]:
        """Say where an inferred schema makes more public than its owner may have meant."""
        return list(self.remarks.doubts)

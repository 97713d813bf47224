"""Everything an attacker may know before asking, as one value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from thinveil.errors import UsageError
from thinveil.language.claims import Claim
from thinveil.language.extents import Extent
from thinveil.language.policies import NO_POLICIES, Policies
from thinveil.language.schema import Schema
from thinveil.language.texts import many

MOST_RECORDS: Final = 2**53
"""The most records of a table: whole numbers up to here are exact as doubles, as answers are."""


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """What is public about a target: its size, its schema, its claim and its policies.

    The size of the table is public because it is a query of sensitivity zero.
    """

    records: int
    schema: Schema
    claim: Claim
    policies: Policies = field(default=NO_POLICIES, repr=False)

    def __post_init__(self) -> None:
        if self.records < 1:
            raise UsageError("the table is empty: there is nothing to attack")
        if self.records > MOST_RECORDS:
            raise UsageError("the table has more than 2^53 records: no answer can count them")
        reach = self.claim.reach
        if self.records < 2 * reach:
            group = f"the group size is k = {reach}: below 2k"
            if self.claim.k != reach:
                group = f"noise reaches {many(reach, 'record')} far: below twice that"
            raise UsageError(
                f"the number of records is {self.records} and {group} = {2 * reach} records "
                "several tables look alike in every answer, so no attack can be exact. Use "
                f"{'a smaller k or ' if reach > 1 else ''}a larger table"
            )
        if self.policies.min_epsilon is not None and not self.claim.protected:
            raise UsageError("an unprotected mechanism claims no loss: it has no smallest share")
        if self.claim.universe == "bounded":
            Extent.of(self.schema, "bounded")

    def assumed_public(self) -> list[str]:
        """List, for people, what the attacker was assumed to know."""
        claim = self.claim
        group = f", k = {claim.k}" if claim.k else ""
        return [
            f"the number of records: {self.records:,}",
            f"the mechanism: {claim.name}{group}, {claim.universe} universe",
            *(f"the policy: it {each}" for each in self.policies.describe()),
            *(f"{each.name}: {each.describe()}" for each in self.schema),
        ]

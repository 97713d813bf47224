"""One picture for each attack, drawn from what it really asked and got."""

from collections import Counter
from typing import Any

from drawing import (
    BLUE,
    GREEN,
    GREY,
    KINDS,
    ORANGE,
    RED,
    THIRTIES,
    Listening,
    ask,
    canvas,
    huge,
    inside,
    kind,
    save,
)

import thinveil

Asked = list[tuple[int, int, int, float]]
"""Low and high end of the range, threshold, answer: in the order of asking."""


def draw() -> None:
    """Draw all of them."""
    count()
    column()
    dataset()
    membership()
    uniqueness()
    attribute()
    strategies()


def _listened(data: thinveil.Dataset, **how: Any) -> tuple[Asked, Any]:
    """Run an attack through idp and return what was asked, and the verdict."""
    target = Listening(data, thinveil.idp(1))
    verdict = thinveil.audit(target, truth=data, checks="off", **how)
    asked: Asked = []
    for batch, answers in target.heard:
        rows = zip(batch.low, batch.high, batch.threshold, answers, strict=True)
        asked += [(int(low), int(high), int(b), float(got)) for low, high, b, got in rows]
    return asked, verdict


def count() -> None:
    """Draw the search for the two edges."""
    data = thinveil.people(60)
    curator_k = 2
    target = Listening(data, thinveil.idp(curator_k))
    ages = ({"age": "30..39"},)
    thinveil.audit(target, attack="count", people=ages, strategy="published", checks="off")
    asked = [
        (int(b), float(got))
        for batch, answers in target.heard
        for b, got in zip(batch.threshold, answers, strict=True)
    ]
    right = inside(data, THIRTIES)
    low, high = right - curator_k - 0.5, right + curator_k - 0.5
    figure, axes = canvas(size=(8.5, 4))
    axes.axvspan(low, high, color=ORANGE, alpha=0.15, lw=0)
    for name, (colour, mark) in KINDS.items():
        mine = [(b, place) for place, (b, got) in enumerate(asked, 1) if kind(got) == name]
        if mine:
            axes.plot(*zip(*mine, strict=True), mark, color=colour, ms=9, mew=2, label=name)
    axes.plot([b for b, _ in asked], range(1, len(asked) + 1), color=GREY, lw=0.8, zorder=0)
    axes.set(xlabel="threshold b", ylabel="question number", yticks=range(1, len(asked) + 1))
    axes.set(xlim=(-1, 60), ylim=(len(asked) + 0.6, 0.2))
    axes.text(high + 0.6, len(asked) + 0.3, f"exactly 0 from {right + curator_k} = count + k on",
              color=GREY, va="bottom")  # fmt: skip
    axes.set_title(f"{len(asked)} questions find the edge of the noise: count {right}, k = 2",
                   loc="left")  # fmt: skip
    axes.legend(frameon=False, loc="upper right")
    save(figure, "attack-count")


def column() -> None:
    """Draw how ranges are halved until every value is found."""
    data = thinveil.people(12)
    asked, verdict = _listened(data, attack="column", columns=("age",))
    figure, axes = canvas(size=(8.5, 5))
    for place, (low, high, _, got) in enumerate(asked):
        colour, _ = KINDS[kind(got)]
        axes.plot([max(low, -140), min(high, 140)], [place, place], color=colour, lw=2.2)
    ages = Counter(data.codes[:, 0].tolist())
    axes.plot(list(ages), [len(asked) + 3] * len(ages), "k|", ms=12, mew=2)
    axes.text(-138, len(asked) + 3, "the 12 ages, as found", va="center")
    for name, (colour, _) in KINDS.items():
        axes.plot([], [], color=colour, lw=3, label=name)
    axes.set(xlabel="range of ages that the question is about", ylabel="question number")
    axes.set(xlim=(-142, 142), ylim=(len(asked) + 8, -2))
    axes.set_title(f"{verdict.run.meter.queries} questions: ranges shrink to single ages",
                   loc="left")  # fmt: skip
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 0.1))
    save(figure, "attack-column")


def dataset() -> None:
    """Draw the tree of groups: each attribute splits what the ones before left together."""
    whole = thinveil.people(14)
    names = ("insured", "ward", "age")
    places = [whole.schema.column(name) for name in names]
    schema = thinveil.Schema(tuple(whole.schema[place] for place in places))
    data = thinveil.Dataset(schema, whole.codes[:, places])
    _, verdict = _listened(data, order=names)
    rows = sorted((str(row[0]), str(row[1]), str(row[2])) for row in data.rows())
    assert verdict.score.exact  # the tree below is what was found
    figure, axes = canvas(size=(10, 4.6))
    axes.grid(visible=False)
    middle: dict[tuple[str, ...], float] = {}
    for depth in range(len(names) + 1):
        groups: dict[tuple[str, ...], list[int]] = {}
        for place, row in enumerate(rows):
            groups.setdefault(row[:depth], []).append(place)
        for group, members in groups.items():
            middle[group] = sum(members) / len(members)
            if depth:
                axes.plot([middle[group[:-1]], middle[group]], [-depth + 1, -depth], color=GREY,
                          lw=0.6 + 0.5 * len(members), alpha=0.6, zorder=1)  # fmt: skip
            text = group[-1] if depth else "everybody"
            if depth < len(names):
                text += f"\n{len(members)}"
            elif len(members) > 1:
                text += f" (x{len(members)})"
            axes.text(middle[group], -depth, text, ha="center", va="center", fontsize=8.5,
                      bbox={"boxstyle": "round", "fc": "white", "ec": BLUE})  # fmt: skip
    asked = verdict.run.meter.by_column.tolist()
    labels = [f"{name}: {asked[place]} questions" for place, name in enumerate(names)]
    axes.set_yticks([-1, -2, -3], labels)
    axes.set(xticks=[], xlim=(-0.8, len(rows) - 0.2), ylim=(-3.5, 0.5))
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.set_title("Attribute after attribute, group after group (14 people, three attributes)",
                   loc="left")  # fmt: skip
    save(figure, "attack-dataset")


def membership() -> None:
    """Draw the one answer that says whether a person is there."""
    data = thinveil.people(200)
    there = [dict(enumerate(row)) for row in data.codes[:20].tolist()]
    away = [dict(enumerate(row)) for row in thinveil.people(220).codes[200:].tolist()]
    boxes = [{c: (v, v + 1) for c, v in person.items()} for person in there + away]
    answers = ask(data, thinveil.idp(1), [(box, 1) for box in boxes])[:, 0]
    figure, axes = canvas(size=(8.5, 3.8))
    for name, (colour, mark) in KINDS.items():
        mine = [(i, a) for i, a in enumerate(answers.tolist()) if kind(a) == name]
        if mine:
            axes.plot(*zip(*mine, strict=True), mark, color=colour, ms=8, mew=2, label=name)
    huge(axes)
    axes.axvline(19.5, color=GREY, ls=":")
    axes.text(9.5, 60, "in the table", ha="center")
    axes.text(29.5, 60, "not in the table", ha="center")
    axes.set(xlabel="40 people, one question each", ylabel="answer", xticks=[])
    axes.set_title("Is there more than k = 1 such record? Noise means: yes, one is there",
                   loc="left")  # fmt: skip
    axes.legend(frameon=False, loc="lower right")
    save(figure, "attack-membership")


def uniqueness() -> None:
    """Draw what comes back at b = k and b = k + 1 for zero to three such people."""
    data = thinveil.people(60)
    jobs = data.schema.column("job")
    boxes: dict[int, dict[int, tuple[int, int]]] = {}
    for low in range(100):
        for width in range(1, 12):
            box = {0: (low, low + width), jobs: (0, 99)}
            boxes.setdefault(inside(data, box), box)
    figure, axes = canvas(size=(8.5, 3.4))
    axes.grid(visible=False)
    for matching in range(4):
        for threshold in (1, 2):
            asked = [(boxes[matching], threshold)]
            got = float(ask(data, thinveil.idp(1), asked, seed=2 * matching + threshold)[0, 0])
            colour = KINDS[kind(got)][0]
            axes.add_patch(_tile(matching, threshold, colour))
            shown = f"{kind(got)}" if kind(got) != "noise" else f"noise:\n{got:,.0f}"
            axes.text(matching, threshold, shown, ha="center", va="center")
    axes.set_xticks(range(4), ["nobody", "one: unique", "two", "three"])
    axes.set_yticks([1, 2], ["b = k = 1", "b = k + 1 = 2"])
    axes.set(xlim=(-0.55, 3.55), ylim=(2.55, 0.45))
    axes.set_xlabel("how many records fit what is known of the person")
    axes.set_title("Noise at b = 1 and exactly 0 at b = 2: only for one", loc="left")
    axes.add_patch(_tile(1, 1.5, "none", edge=RED, height=1.94))
    save(figure, "attack-uniqueness")


def _tile(x: float, y: float, colour: str, edge: str = "white", height: float = 0.9) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.47, y - height / 2), 0.94, height, fc=colour, ec=edge, lw=2.5,
                     alpha=0.35 if edge == "white" else 1)  # fmt: skip


def attribute() -> None:
    """Draw how one person's salary is closed in on."""
    data = thinveil.people(60)
    row = data.rows()[1]
    salary = data.schema.column("salary")
    true = int(data.codes[1, salary])
    known = ({"age": str(row[0]), "postcode": str(row[1]), "job": str(row[2])},)
    asked, _ = _listened(data, attack="attribute", people=known, columns=("salary",))
    asked = [each for each in asked if each[1] - each[0] < 10**9]
    figure, axes = canvas(size=(8.5, 4.6))
    for place, (low, high, _, got) in enumerate(asked, 1):
        colour, mark = KINDS[kind(got)]
        width = max(1, *(abs(end - true) for end in (low, high))) / 100
        axes.plot(place, width, mark, color=colour, ms=8, mew=2)
    for name in ("noise", "exactly 0"):
        colour, mark = KINDS[name]
        text = {"noise": "noise: it is in this range", "exactly 0": "exactly 0: it is not"}[name]
        axes.plot([], [], mark, color=colour, ms=8, mew=2, label=text)
    axes.set(yscale="log", xlabel="question number", ylabel="farthest end of the range\nfrom the"
             " true salary")  # fmt: skip
    axes.set_title(f"One person's salary, to the cent: {len(asked)} questions", loc="left")
    axes.legend(frameon=False)
    save(figure, "attack-attribute")


def strategies() -> None:
    """Draw how many questions each strategy asks for the same table."""
    data = thinveil.people(300)
    asked = {}
    for name in ("published", "posterior", "adaptive", "thrifty"):
        verdict = thinveil.audit(data, strategy=name)
        assert verdict.score is not None
        assert verdict.score.exact
        asked[name] = verdict.run.meter.queries
    figure, axes = canvas(size=(8, 2.6))
    colours = (GREY, GREEN, BLUE, RED)
    bars = axes.barh(list(asked), list(asked.values()), color=colours, height=0.6)
    axes.bar_label(bars, [f"{each:,}" for each in asked.values()], padding=4)
    axes.invert_yaxis()
    axes.set(xlabel="answers asked for", xlim=(0, max(asked.values()) * 1.15))
    axes.set_title("300 people, idp, all records exact: the same table, four strategies",
                   loc="left")  # fmt: skip
    axes.xaxis.set_major_formatter("{x:,.0f}")
    save(figure, "attack-strategies")

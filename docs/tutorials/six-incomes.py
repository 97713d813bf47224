# ruff: noqa: D100, E402, E501

# %% [markdown]
# # Six incomes
#
# The paper's worked example, step by step. Six people, one attribute, a mechanism that satisfies Individual
# Differential Privacy at a loss of 1e-10 an answer. At the end we know all six incomes, from an attack that we
# write ourselves in twenty lines.

# %% [markdown]
# ## The table, and the curator in front of it
#
# The curator holds the table. It answers questions of one kind: *are there more than b incomes in [u, v)?* Its
# answer is 1 for yes and 0 for no, plus Laplace noise of scale (local sensitivity) / epsilon. The local
# sensitivity is 1 if changing one person's income could flip the answer, and 0 if nobody could.

# %%
import numpy as np

import thinveil

incomes = thinveil.Dataset(
    thinveil.Schema((thinveil.Grid("income"),)), np.array([[5], [8], [15], [16], [17], [18]])
)
curator = thinveil.Curator(incomes, thinveil.idp(1), seed=0)
print(curator.facts.claim.describe())
print("public:", curator.facts.records, "records")

# %% [markdown]
# From here on we are the attacker. All we have is this function. `asked` counts.

# %%
asked = 0


def answer(u, v, b, target=curator):
    """Ask whether more than b incomes are in [u, v)."""
    global asked
    asked += 1
    question = thinveil.batch_of([([{0: (u, v)}], b)])
    return float(target.answer(question.stamped(("tutorial", asked), 1e-10)).values[0])


print(answer(1, 10, 3))

# %% [markdown]
# ## First answer: exactly 0
#
# Are there more than 3 incomes in [1, 10)? The answer is 0, and not 0.37 or minus four thousand millions. Noise of
# scale 1e10 does not hit 0 by chance. So there *was* no noise: nobody's change could have flipped the answer. If 3
# people were in the range, one more would have made it 4, and the answer 1. So there are at most 2.
#
# ## Second answer: noise

# %%
print(f"{answer(1, 10, 2):,.3f}")

# %% [markdown]
# Are there more than 2? We know that there are not. We ask all the same, and the answer is noise. It hides the bit,
# which we know, and shows that the local sensitivity is 1: one change could lift the count above 2. So there are at
# least 2. (The paper prints "at least b + k - 1"; it means b - k + 1, erratum 2.)
#
# At most 2 and at least 2: **exactly two people have an income in [1, 10)**. Two answers, 2e-10 claimed.

# %% [markdown]
# ## All thresholds
#
# Exactly 1, then noise at 2k = 2 thresholds, then exactly 0. Either edge of the noise gives the count.

# %% alt="Answers at thresholds 0 to 5: exactly 1 at 0, noise at 1 and 2, exactly 0 from 3 on"
import matplotlib.pyplot as plt

answers = [answer(1, 10, b) for b in range(6)]
exact = [b for b in range(6) if answers[b] in (0, 1)]
noise = [b for b in range(6) if answers[b] not in (0, 1)]
figure, axes = plt.subplots(figsize=(6, 2.8))
axes.axvspan(min(noise) - 0.5, max(noise) + 0.5, color="#E69F00", alpha=0.15)
axes.plot(exact, [answers[b] for b in exact], "o", color="#0072B2", ms=9, label="exact")
axes.plot(
    noise, [0.5] * len(noise), "x", color="#E69F00", ms=10, mew=3, label="noise (off the scale)"
)
axes.set(xlabel="threshold b", ylabel="answer", ylim=(-0.2, 1.2), yticks=[0, 1])
axes.legend(frameon=False, loc="upper right")
axes.set_title("Are there more than b incomes in [1, 10)?", loc="left")
plt.show()

# %% [markdown]
# ## An attack of our own
#
# *Counting* is the paper's Algorithm 1: raise b until exact turns into noise or noise into exact. If all answers are
# exact, nobody is in the range, or everybody.
#
# *Values* come by halving: count the left half, the rest is in the right half, go on until a range holds one
# possible income.


# %%
def count(u, v, ask):
    """Return how many incomes are in [u, v): Algorithm 1."""
    before = ask(u, v, 0)
    for b in range(1, 6):
        now = ask(u, v, b)
        if (now in (0, 1)) != (before in (0, 1)):
            return b + 1 if before == 1 else b - 1  # the lower edge, or the upper one
        before = now
    return 6 if before == 1 else 0


def values(u, v, inside, ask):
    """Return the incomes in [u, v), of which there are so many."""
    if inside == 0:
        return []
    if v - u == 1:
        return [u] * inside
    middle = (u + v) // 2
    left = count(u, middle, ask)
    return values(u, middle, left, ask) + values(middle, v, inside - left, ask)


asked = 0
print(values(0, 32, 6, answer))
print(asked, "answers, claimed loss", f"{asked * 1e-10:.1e}")

# %% [markdown]
# All six, exactly. Had we asked at 1e-12 an answer, the claimed loss would be a hundredth, and the noise a hundred
# times larger. The result would be the same: only *whether* there is noise matters.

# %% [markdown]
# ## A better search
#
# Algorithm 1 walks. thinveil's own searches choose the threshold that tells most, and do not even need to be told
# where the incomes lie: they find the range by doubling.

# %%
for strategy in ("linear", "published", "adaptive"):
    verdict = thinveil.audit(incomes, attack="column", columns=("income",), strategy=strategy)
    print(f"{strategy:10}", verdict.sentence())

# %% [markdown]
# ## The same attack on honest differential privacy
#
# The curator below scales its noise by the *global* sensitivity: how far the answer can move on any table. That is 1
# for every question, so noise is always there, and always the same. Our attack sees noise only. It never meets an
# edge, and returns nonsense.

# %%
honest = thinveil.Curator(incomes, thinveil.claim_named("dp-laplace", 1), seed=0)
print([f"{answer(1, 10, b, honest):,.0f}" for b in range(6)])
print(count(1, 10, lambda u, v, b: answer(u, v, b, honest)), "people in [1, 10), it says")

# %% [markdown]
# thinveil's attack looks for any usable difference, does not find one in 4,096 answers to one question, and says so
# instead of guessing:

# %%
print(thinveil.audit(incomes, mechanism="dp-laplace").sentence())

# %% [markdown]
# ## What to take away
#
# - Noise that depends on the data is itself an answer.
# - The claimed loss was computed by the rules, and the rules do not look at this.
# - Next: [Is my neighbour in the table?](neighbour.ipynb) and [Why the fix does not fix it](fix.ipynb).

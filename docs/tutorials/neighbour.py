# ruff: noqa: D100, E402, E501

# %% [markdown]
# # Is my neighbour in the table?
#
# A hospital answers questions about its patients under Individual Differential Privacy, at a claimed loss of 1e-10 an
# answer. You know that your neighbour is 40 and a nurse. Was she a patient? One question tells. Then we ask what such
# an answer means in the language of differential privacy, by flipping coins.

# %%
import thinveil

patients = thinveil.people(60)  # made up; nobody of them exists
print(patients.records, "patients:", ", ".join(patients.schema.names))

# %% [markdown]
# ## One question
#
# The predicate "40 and a nurse" fits her and, we think, nobody else in town. Ask: *are there more than 1 such
# patients?* We do not care about that bit.
#
# - If nobody fits, one change makes it one, and one is not more than 1. The answer cannot flip: **exactly 0**.
# - If one patient fits, one change makes it two. The answer can flip: **noise**.

# %%
curator = thinveil.Curator(patients, thinveil.idp(1), seed=0)
jobs = patients.schema.column("job")
nurse = patients.schema[jobs].values.index("nurse")
for number, age in enumerate((40, 41)):
    question = thinveil.batch_of([([{0: (age, age + 1), jobs: (nurse, nurse + 1)}], 1)])
    answer = curator.answer(question.stamped(("neighbour", number), 1e-10)).values[0]
    print(f"{age} and a nurse, more than one? {answer:,.1f}")

# %% [markdown]
# She is in the table. A nurse of 41 is not. The same as a command of thinveil, which also says how sure it is:

# %%
for age in ("40", "41"):
    verdict = thinveil.audit(patients, attack="membership", people=({"age": age, "job": "nurse"},))
    print(verdict.sentence(), f"Misread with a chance below {verdict.error_probability:.0e}.")

# %% [markdown]
# The paper takes two questions for this; one is enough (erratum 7).
#
# ## From being there to everything else
#
# She is alone in what we know of her, so every further attribute is a membership question in disguise: is she there
# *with* a salary below 3,000?

# %%
verdict = thinveil.audit(
    patients,
    attack="attribute",
    people=({"age": "40", "job": "nurse"},),
    columns=("diagnosis", "salary"),
)
print(verdict.sentence())
print(verdict.to_plain()["result"][0]["values"])

# %% [markdown]
# ## How bad is that? A trial with a coin
#
# "It worked once" is no evidence. Differential privacy offers a yardstick. Take a target and flip a coin:
#
# - heads: the curator answers about the table as it is;
# - tails: about a neighbour of it, in which the target's record was replaced by another.
#
# The attack guesses which. Do that many times. Where a mechanism is epsilon-DP, a guess is right with a probability of
# at most e^epsilon / (1 + e^epsilon). So the share of right guesses gives a *lower bound* on epsilon.

# %%
trial = thinveil.trial(patients, mechanism="idp", trials=400, seed=0)
print(f"right 'in': {trial.tpr:.3f}   wrong 'in': {trial.fpr:.3f}")
print(trial.sentence())

# %% [markdown]
# Never wrong in 400 trials. Why is the bound not infinite? Because 400 trials cannot show more: perhaps the attack is
# wrong once in a thousand times. At a given confidence there is a ceiling, and only more trials lift it.

# %% alt="The bound that an attack without a mistake shows, against the number of trials: it grows with the logarithm of the trials"
import matplotlib.pyplot as plt

sizes = (50, 100, 200, 400, 800, 1600)
bounds = [thinveil.trial(patients, trials=size, seed=1).epsilon_at_least for size in sizes]
figure, axes = plt.subplots(figsize=(6, 2.8))
axes.plot(sizes, bounds, "o-", color="#D55E00", label="idp: epsilon is at least")
axes.axhline(0, color="#0072B2", ls="--", label="idp claims 0.0000000001")
axes.set(xscale="log", xlabel="trials", ylabel="epsilon", xticks=sizes, xticklabels=sizes)
axes.legend(frameon=False)
axes.set_title("A perfect score shows more, the longer it lasts", loc="left")
plt.show()

# %% [markdown]
# Read it with care. The mechanism claims 1e-10 *in the sense of Individual DP*, and nothing here refutes that: by its
# own definition it may be right. *In the sense of differential privacy* it cannot be better than the bound. The two
# senses are that far apart.
#
# ## Whoever asks nothing, and honest noise
#
# A trial without a baseline would be worthless. Somebody who asks nothing and guesses scores chance. So does the attack
# where noise is scaled by the global sensitivity.

# %%
print(f"asking nothing: at least {trial.baseline.epsilon_at_least:.2f}")
for mechanism in ("unprotected", "idp", "idp-binary", "bdp", "dp-laplace"):
    each = thinveil.trial(patients, mechanism=mechanism, trials=100, seed=2)
    a_trial = each.queries / each.trials
    print(f"{mechanism:12} at least {each.epsilon_at_least:.2f}, {a_trial:,.1f} answers a trial")

# %% [markdown]
# For `dp-laplace` the bound is 0: the guesses were right about half of the time. That is no proof
# that there is no difference; the proof is in the definition. 4,096 answers at 1e-10 each claim 4e-7 in all,
# in the sense of differential privacy itself.
#
# ## What to take away
#
# - Being in the table is one answer away, whatever epsilon is claimed.
# - A lower bound with its confidence, a ceiling and a baseline says what was shown, and no more.
# - More on the statistics: [Verdicts](../verdicts.md). Next: [Why the fix does not fix it](fix.ipynb).

// Questions, answers and what they tell, in plain words.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const FINE = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const SMALL = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

const ENOUGH = 8; // so many rounded answers that agree are more than a sign

export const count = (number) => WHOLE.format(number);

/** A count with its noun: 1 record, 2 records. */
export const counted = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** A small number: 0.0000001578, and 1.5e-12 only where that is long. */
export function spelled(number) {
  if (number === null) return "nothing";
  if (number === 0) return "0";
  if (number >= 1000) return WHOLE.format(number);
  if (number < 1e-10) return number.toExponential(2).replace(/\.?0+e/, "e");
  const places = Math.min(20, Math.max(0, 3 - Math.floor(Math.log10(number))));
  return number.toFixed(places).replace(/\.?0+$/, "");
}

function noise(value) {
  const size = Math.abs(value);
  if (size >= 1e15) return value.toExponential(3).replace("-", "−");
  return (size >= 1000 ? FINE : SMALL).format(value).replace("-", "−");
}

/** The mechanism of a run, with its own k and epsilon: what is chosen by now may be something else. */
export function guard({ mechanism, k, epsilon }) {
  const parts = [mechanism.name];
  if (k !== null && k !== undefined) parts.push(`k = ${k}`);
  if (mechanism.protected) parts.push(`epsilon ${epsilon} each answer`);
  return parts.join(", ");
}

/** A box: what is new first, then what was known of the group. */
function box(run, cell, range) {
  const words = (ranges) => ranges.map((each) => run.ranges[each][0]).filter(Boolean).join(" and ");
  const group = words(run.cells[cell]), narrowed = range < 0 ? "" : words([range]);
  return narrowed && group ? `${narrowed}, among those with ${group}` : narrowed || group;
}

/** Whom a question asks about. */
export function whom(run, question) {
  const boxes = [];
  for (let at = 0; at < question.boxes.length; at += 2) boxes.push(box(run, question.boxes[at], question.boxes[at + 1]));
  if (boxes.some((each) => !each)) return "in the table";
  if (boxes.length === 1) return `with ${boxes[0]}`;
  const shown = boxes.slice(0, 2).map((each) => `(${each})`).join(" or ");
  const more = boxes.length - 2;
  return `with ${shown}${more ? ` or in ${more} further ${more === 1 ? "group" : "groups"}` : ""}`;
}

export function asked(run, question) {
  const { threshold } = question;
  if (threshold === 0) return `Is there anybody ${whom(run, question)}?`;
  const number = `${threshold}`.replace("-", "−");
  return `Are there more than ${number} ${threshold === 1 ? "person" : "people"} ${whom(run, question)}?`;
}

/** An answer: its words, and whether it is exact, noise, or cannot be told. */
export function answered(run, { answer }) {
  const { post, offset, protected: guarded } = run.law;
  if (!Array.isArray(answer)) {
    const exact = answer === 0 || answer === 1;
    if (!exact || (guarded && (offset > 0 || !run.law.leaks))) return { text: `noise: ${noise(answer)}`, kind: "noise" };
    const bit = answer === 1 ? "yes (1)" : "no (0)";
    if (!guarded) return { text: bit, kind: "exact" };
    return post === "binary" ? { text: `${bit}, rounded`, kind: "unsure" } : { text: `exactly ${bit}`, kind: "exact" };
  }
  const [first, many, size, zeros = 0, ones = 0] = answer;
  if (zeros + ones === many) {
    const kind = zeros && ones ? "noise" : many < ENOUGH ? "unsure" : "exact";
    return { text: `asked ${many} times: yes ${ones}, no ${zeros}`, kind };
  }
  const shown = first.map(noise).join("; ");
  return { text: `asked ${count(many)} times: ${shown}; … typical size ${noise(size)}`, kind: "noise" };
}

function zone(low, high) {
  if (low === high) return `exactly ${low}`;
  return high - low === 1 ? `${low} or ${high}` : `${low} to ${high}`;
}

/** What an answer told the outsider. */
export function told(run, question) {
  const { threshold: b, answer } = question;
  const { law, size: n } = run;
  const many = Array.isArray(answer);
  if (b < 0 || b >= n) return "No table can answer this otherwise: it costs a question and tells nothing.";
  const truly = (bit) => (bit ? `so there ${b + 1 === n ? "are all" : `are at least ${b + 1}`}` : b === 0 ? "so there is nobody" : `so there are at most ${b}`);
  if (!law.protected) return `The answer is true: ${truly(answer === 1)}.`;
  if (law.textbook) return "The noise has the same size whatever the count is, but it is drawn in doubles: most can come from one true answer only.";
  if (!law.leaks) return "The noise has about the same size whatever the count is: this tells next to nothing.";
  const single = many ? null : answer;
  if (!law.counts) {
    if (single === 0) return "No noise: so nobody fits.";
    if (single === 1) return "No noise: so everybody fits.";
    return "Noise only appears where somebody fits, but not everybody: so there is somebody.";
  }
  const k = law.reach, low = Math.max(0, b - k + 1), high = Math.min(n, b + k), here = zone(low, high);
  const outside = (bit) => (bit ? `at least ${b + k + 1}` : b - k <= 0 ? "0" : `at most ${b - k}`);
  if (law.offset > 0) {
    const size = (many ? answer[2] : Math.abs(answer)) * Number(run.start.epsilon);
    const usual = law.offset, more = law.offset + 1;
    const near = size > (usual + more) / 2;
    return `Every answer is noisy, but noise is ${more} / epsilon where the count is ${here}, and ${usual} / epsilon elsewhere. Here it was ${SMALL.format(size)} / epsilon: a sign that the count ${near ? "is" : "is not"} ${here}.`;
  }
  if (law.post === "binary") {
    if (!many) return `Rounding hides the noise in a single answer. Where the count is ${here} the answer is a coin flip; elsewhere it is always the same. Several answers together tell.`;
    const [, times, , zeros = 0, ones = 0] = answer;
    if (zeros && ones) return `The answers differ, so there is noise: the count is ${here}.`;
    const chance = `All ${times} answers agree, as a coin would once in ${count(2 ** (times - 1))} times`;
    return times < ENOUGH ? `${chance}: this alone tells little. The attack weighs it together with other answers.` : `${chance}: so the count is most likely ${outside(ones > 0)}.`;
  }
  if (single === 0 || single === 1) return `No noise: so the count is ${outside(single === 1)}.`;
  return `Noise only appears where the count is ${here}.`;
}

const PHASES = {
  "finding bounds": "Finding out where the numbers begin and end",
  histograms: "Counting how often each value occurs",
  values: "Finding out which values occur",
  proving: "Asking again about what is not certain yet",
  "searching again": "Searching again where a proof failed",
};

const FIRST = {
  "": "First it learns which values occur and how often",
  "finding bounds": "First it learns where the numbers begin and end",
  histograms: "First it learns which values occur and how often",
  values: "First it learns which values occur",
};

/** What is being found out; at first no cell of the table can show it. */
export function phase(label, first = false) {
  if (first && FIRST[label]) return FIRST[label];
  if (PHASES[label]) return PHASES[label];
  return label ? label[0].toUpperCase() + label.slice(1) : "Asking";
}

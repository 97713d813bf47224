(globalThis.thinveilRecordings ??= {})['index'] = {
 "tables": [
  {
   "name": "people-30",
   "title": "30 made-up people"
  }
 ],
 "mechanisms": [
  {
   "name": "idp-k1",
   "title": "idp, k = 1",
   "line": "Individual DP: noise only where k people could tip the answer.",
   "file": "idp-k1"
  },
  {
   "name": "idp-k3",
   "title": "idp, k = 3",
   "line": "Individual DP: noise only where k people could tip the answer.",
   "file": "idp-k3"
  },
  {
   "name": "idp-binary",
   "title": "idp-binary",
   "line": "Individual DP, answers rounded to yes or no.",
   "file": "idp-binary"
  },
  {
   "name": "idp-noisy",
   "title": "idp-noisy",
   "line": "Individual DP with some noise on every answer: a repair that fails.",
   "file": "idp-noisy"
  },
  {
   "name": "bdp",
   "title": "bdp",
   "line": "Bootstrap DP: noise unless nobody or everybody fits.",
   "file": "bdp"
  },
  {
   "name": "unprotected",
   "title": "unprotected",
   "line": "True answers: no protection, and none is claimed.",
   "file": "unprotected"
  },
  {
   "name": "dp-laplace",
   "title": "dp-laplace (honest)",
   "line": "Honest differential privacy: the same noise on every answer.",
   "file": "dp-laplace"
  }
 ],
 "attacks": [],
 "strategies": [],
 "usual": {
  "epsilon": "1e-10",
  "strategy": "adaptive",
  "speed": 100.0,
  "haste": {
   "from": 100,
   "times": 8
  }
 },
 "note": "These are recordings of real runs, with seed 0. To choose a table, an attack and a seed yourself, install thinveil[lab] and run: thinveil lab"
};

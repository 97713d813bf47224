"""A seeded part of the long runs under bench/soaks; `python -m bench soak` runs the whole."""

from bench.soaks.files import damaged_files


def test_damaged_files_end_in_a_verdict_or_a_clear_error():
    outcome = damaged_files(seed=5, count=150)
    assert outcome.broken == []
    assert outcome.codes[0] > 5  # some files are still tables
    assert outcome.codes[1] > 50

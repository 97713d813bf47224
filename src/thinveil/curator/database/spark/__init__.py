"""Counting at Spark's executors: each keeps an index of its part of the codes; counts leave."""

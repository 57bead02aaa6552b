"""Whatever a backend says: a result, or an error of the family, and never anything else."""

import json
import math
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from adapter.sources.prometheus.query_result import (
    MalformedResultError,
    QueryRefusedError,
    names,
    refusal,
    result,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)
NUMBERS = st.floats() | st.integers(-(10**18), 10**18)
LABELS = st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=3)


def likely(data):
    return {"status": "success", "data": {"resultType": "vector", "result": data}}


@given(body=st.binary() | (JSON | JSON.map(likely)).map(lambda v: json.dumps(v).encode()))
def test_any_bytes_are_a_result_or_a_fault(body):
    refusal(body)
    for read in (result, names):
        with suppress(MalformedResultError, QueryRefusedError):
            read(body)


@given(series=st.lists(st.tuples(LABELS, NUMBERS), max_size=5))
def test_every_number_arrives_as_it_was_written(series):
    written = [
        {"metric": labels, "value": [1.5, str(number).replace("inf", "Inf")]}
        for labels, number in series
    ]
    read = result(json.dumps(likely(written)).encode())
    assert len(read.samples) == len(series)
    for sample, (labels, number) in zip(read.samples, series, strict=True):
        assert sample.labels == labels
        assert sample.value == float(number) or (math.isnan(sample.value) and math.isnan(number))

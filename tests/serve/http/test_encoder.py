"""Values as JSON."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpcfg.serve.http.encoder import Encoded, encoded


@given(
    st.floats(allow_nan=False, allow_infinity=False), st.text(alphabet=st.characters(codec="utf-8"))
)
def test_encoded_values_are_read_back_as_they_were(number: float, text: str) -> None:
    value = {"number": number, "text": [text, "NaN", "-Infinity"], "none": None}
    assert json.loads(encoded(value)) == value


@given(st.lists(st.text(alphabet=st.characters(codec="utf-8")), min_size=1))
def test_parts_that_are_encoded_stand_as_they_are(texts: list[str]) -> None:
    parts = [encoded({"text": one, "number": 0.1}) for one in texts]
    value = {"a": {"b": [1]}, "parts": parts, "part": parts[0], "none": []}
    plain = {**value, "parts": [json.loads(one) for one in parts], "part": json.loads(parts[0])}
    assert json.loads(encoded(value)) == plain
    assert encoded(parts[0]) is parts[0]
    assert isinstance(encoded([value["part"], value]), Encoded)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_lacks_are_not_encoded(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        encoded({"number": number})

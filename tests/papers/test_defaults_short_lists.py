"""The rule for short lists, as it comes."""

from slatewise_papers.defaults.documents import short_list_rows


def test_letor4_is_lower_by_the_short_lists(monkeypatch) -> None:
    monkeypatch.setenv("SLATEWISE_DATA", "/nowhere")
    (row,) = short_list_rows(quick=True, seed=0)
    short, lists = row.measured["of these shorter than 10"], row.measured["lists"]
    assert 0 < short < lists
    lost = row.measured["letor NDCG@10"] - row.measured["letor4 NDCG@10"]
    assert 0 < lost <= short / lists

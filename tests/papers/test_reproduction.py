"""What a reproduction shows."""

from slatewise_papers.framework.reproduction import Reproduction, Row


def test_errors_intervals_and_p_values_stand_in_the_cell_of_their_figure():
    rows = [
        Row("ours", {"R@5": 9.83, "R@5_se": 0.12, "seconds": 3.0}, {"R@5": 5.6}),
        Row("a minus b", {"R@5": 1.0, "R@5_low": 0.5, "R@5_high": 1.5, "R@5_p": 0.001}, None),
    ]
    columns, cells = Reproduction("a paper", "some data", rows).table()
    assert columns == ["", "R@5", "seconds"]
    assert cells == [["ours", "9.83 ± 0.12 (5.6)", "3"], ["a minus b", "1 [0.5, 1.5], p 0.001", ""]]


def test_the_page_shows_no_error_in_a_column_of_its_own():
    row = Row("ours", {"R@5": 9.83, "R@5_se": 0.12}, None)
    page = Reproduction("a paper", "some data", [row]).page().html()
    assert "9.83 ± 0.12" in page
    assert "R@5_se" not in page

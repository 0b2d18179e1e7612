import re
from html.parser import HTMLParser

from slatewise.report import Page, bars


def test_text_is_escaped_and_nothing_is_fetched(tmp_path):
    page = Page("a <b> & c")
    page.heading("<script>")
    page.paragraph("x < y")
    page.table("cap<", ["n", "v"], [["<i>", "1.5"], ["b", "3.2x"]])
    page.figure(bars(["g"], {"s": [1.0], "t": [2.0]}, "NDCG"), "fig")
    page.write(tmp_path / "deep" / "report.html")
    text = (tmp_path / "deep" / "report.html").read_text()
    HTMLParser().feed(text)
    assert "<script" not in text
    assert text.count('<td class="number"') == 2
    assert not re.search(r'(src|href)="(?!#)', re.sub(r"<svg.*?</svg>", "", text, flags=re.S))


def test_same_plot_same_text():
    assert bars(["g"], {"s": [1.0]}, "y") == bars(["g"], {"s": [1.0]}, "y")

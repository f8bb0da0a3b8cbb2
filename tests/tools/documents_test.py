#!/usr/bin/env python3
"""README and docs: each relative link and its anchor exist, the index has every page, the glossary is in order.

    documents_test.py SOURCE
"""

import pathlib
import re
import sys
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()
PAGES = [*sorted(SOURCE.glob("*.md")), *sorted((SOURCE / "docs").glob("*.md"))]
LINK = re.compile(r"\]\(([^()\s]+)\)")
MOST_BYTES_OF_README = 8000
UNITS = {"": 1, "MB": 10**6, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def prose(page):
    """The page without blocks of code, in which brackets are no links."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def anchors(page):
    """What #... may name in a page: its headings as GitHub writes them."""
    titles = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


def value_of(text):
    """The value of a constant of base/limits.h: 4_MiB, 200'000, std::size_t{1} << 25."""
    form = r"(?:std::\w+{)?(\d+)}?(?:_(\w+))?(?: << (\d+))?"
    number, unit, shift = re.fullmatch(form, text.replace("'", "")).groups()
    return int(number) * UNITS[unit or ""] << int(shift or 0)


class Documents(unittest.TestCase):
    def test_links_resolve(self):
        count = 0
        for page in PAGES:
            for link in LINK.findall(prose(page)):
                if re.match(r"[a-z]+:", link):
                    continue
                count += 1
                path, _, anchor = link.partition("#")
                target = (page.parent / path).resolve() if path else page
                with self.subTest(page=page.name, link=link):
                    self.assertTrue(target.exists())
                    self.assertTrue(target.is_relative_to(SOURCE))
                    if anchor and target.suffix == ".md":
                        self.assertIn(anchor, anchors(target))
        self.assertGreater(count, 50)

    def test_the_index_has_every_page(self):
        index = LINK.findall((SOURCE / "docs/README.md").read_text())
        for page in PAGES:
            if page.parent.name == "docs" and page.name != "README.md":
                self.assertIn(page.name, index)

    def test_readme_is_short(self):
        self.assertLessEqual((SOURCE / "README.md").stat().st_size, MOST_BYTES_OF_README)

    def test_the_glossary_is_in_order(self):
        terms = re.findall(r"^- \*\*(.*?)\*\*: ", (SOURCE / "docs/glossary.md").read_text(), re.MULTILINE)
        self.assertGreater(len(terms), 80)
        self.assertEqual(terms, sorted(set(terms), key=str.lower))

    def test_the_page_of_limits_is_their_table(self):
        table = (SOURCE / "base/limits.h").read_text()
        stated = re.findall(r"^inline constexpr [\w:]+ (k\w+) =\s+(.+?);", table, re.MULTILINE)
        limits = {name: value_of(text) for name, text in stated if name != "kRemedy"}
        rows = re.findall(r"^\| .* \| ([\d,]+)( [KMG]i?B)?[\w ]* \| `(k\w+)` \|$",
                          (SOURCE / "docs/limits.md").read_text(), re.MULTILINE)
        told = {name: int(number.replace(",", "")) * UNITS[unit.strip()] for number, unit, name in rows}
        self.assertGreater(len(limits), 30)
        self.assertEqual(told, limits)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])

"""What a wheel relies on."""

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
# A function, type or constant of one file, at the beginning of a line.
LOCAL = re.compile(
    r"^(?:static|constexpr|struct|class|enum class)\b[^;(={\n]*?\b(\w+)\s*(?:\(|\{|=|:(?!:)|\[)", re.MULTILINE
)


def test_files_of_a_folder_share_no_names():
    """A wheel's build compiles the sources of a folder as one file."""
    places = defaultdict(set)
    for path in [*ROOT.glob("lib/**/*.cpp"), *ROOT.glob("dialects/**/*.cpp")]:
        for name in LOCAL.findall(path.read_text()):
            places[path.parent, name].add(path.name)
    assert len(places) > 200
    assert {key: files for key, files in places.items() if len(files) > 1} == {}

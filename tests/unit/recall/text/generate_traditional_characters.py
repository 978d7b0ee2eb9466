"""Write sync/recall/text/traditional-characters.txt from OpenCC's table.

`python -m tests.unit.recall.text.generate_traditional_characters`, after an update of opencc-python-reimplemented.
"""

from importlib.resources import files
from pathlib import Path
from textwrap import wrap
from typing import Final

from sync.recall.text import traditional_characters

TABLE: Final = Path(traditional_characters.__file__).with_name("traditional-characters.txt")


def generate() -> str:
    """The table. OpenCC names the most common simplified form first."""
    rows = (files("opencc") / "dictionary" / "TSCharacters.txt").read_text("utf-8").splitlines()
    simplified = {traditional: forms.split()[0] for traditional, forms in (row.split("\t") for row in rows)}
    pairs = ((traditional, simplified.get(form, form)) for traditional, form in simplified.items())
    text = "".join(traditional + form for traditional, form in pairs if traditional != form)
    return "\n".join(wrap(text, 100)) + "\n"


if __name__ == "__main__":
    TABLE.write_text(generate(), "utf-8")

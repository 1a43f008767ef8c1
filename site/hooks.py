# SPDX-License-Identifier: Apache-2.0

"""Makes a site of docs/ as it stands: the sidebar, the links out of docs/, and the fences' languages."""

import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SOURCE = "https://github.com/lullhq/lull/blob/main/"
FENCE = re.compile(r"^(\s*```\w+)[ \t]+\S.*$", re.MULTILINE)
LINK = re.compile(r"(\]\()([^)\s#]+)")
ROW = re.compile(r"^\| \[([^\]]+)\]\(([^)]+\.md)\)")


def title(page: Path) -> str:
    """The page's heading."""
    for line in page.read_text().splitlines():
        if line.startswith("# "):
            return line[2:].replace("`", "")
    raise ValueError(f"{page} has no heading")


def folder(index: Path) -> list:
    """A README.md, then the other pages of its folder by name."""
    pages: list = [str(index.relative_to(DOCS))]
    for page in sorted(index.parent.rglob("*.md")):
        if page != index and page.name != "template.md":
            pages.append({title(page): str(page.relative_to(DOCS))})
    return pages


def on_config(config):
    """Makes a tab of each section of docs/README.md, and an entry of each row of its tables."""
    nav: list = [{"Home": "index.md"}]
    for line in (DOCS / "README.md").read_text().splitlines():
        if line.startswith("## "):
            nav.append({line[3:]: []})
        elif (row := ROW.match(line)) and not row[2].startswith(".."):
            page = DOCS / row[2]
            entry = folder(page) if page.name == "README.md" else row[2]
            next(iter(nav[-1].values())).append({row[1][0].upper() + row[1][1:]: entry})
    config.nav = nav + [{"All pages": "README.md"}]
    return config


def on_files(files, config):
    """Adds the repository's README as the home page. docs/README.md moves to another name."""
    files.get_file_from_path("README.md").dest_uri = "pages.html"
    files.append(File.generated(config, "index.md", content=(ROOT / "README.md").read_text()))
    return files


def on_page_markdown(markdown, page, **_):
    """Points links that leave docs/ at the repository, and drops what follows a fence's language."""
    home = page.file.src_uri == "index.md"
    here = "" if home else dirname(join("docs", page.file.src_uri))

    def link(match):
        if re.match(r"[a-z]+:", match[2]):
            return match[0]
        path = normpath(join(here, match[2]))
        if path == "README.md":
            path = "docs/index.md"
        if path.startswith("docs/") and not path.endswith("/"):
            return match[1] + relpath(path, "docs" if home else here)
        return match[1] + SOURCE + path

    return LINK.sub(link, FENCE.sub(r"\1", markdown))

"""Makes the figures and tables of the papers: python validation/papers --out DIRECTORY

`make figures` runs it in an environment that has the packages it needs.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams.update({"font.size": 9, "svg.hashsalt": "wakeai"})

import kozu
import matsuno
import page
import shimada
import tcp_av
import yamaguchi

PAPERS = {
    "matsuno": matsuno.paper,
    "shimada": shimada.paper,
    "kozu": kozu.paper,
    "yamaguchi": yamaguchi.paper,
    "tcp-av": tcp_av.paper,
}


def main() -> int:
    """Runs the command. The exit status is 0 if the page was written, also if figures do not agree."""
    arguments = argparse.ArgumentParser(
        prog="make figures", description="Figures and tables of the papers beside ours, as one HTML file."
    )
    arguments.add_argument("--out", type=Path, required=True, help="directory for figures.html and figures.json")
    arguments.add_argument("--guide", type=Path, help="also write the guide (docs/guides/papers.md), with its pictures in plots/ beside it")
    arguments.add_argument("--repeat", type=int, default=5, help="seeds for a mean (default 5)")
    arguments.add_argument("--papers", nargs="+", choices=PAPERS, default=list(PAPERS), help="only these papers")
    chosen = arguments.parse_args()
    if chosen.repeat < 1:
        arguments.error("--repeat takes 1 or more")
    start = time.monotonic()
    papers = []
    for name in chosen.papers:
        print(f"{name} …", file=sys.stderr)
        papers.append(PAPERS[name](chosen.repeat))
    figures = [figure for paper in papers for figure in paper.figures]
    try:
        chosen.out.mkdir(parents=True, exist_ok=True)
        (chosen.out / "figures.html").write_text(page.html(papers, chosen.repeat), encoding="utf-8")
        if chosen.guide is not None:
            chosen.guide.write_text(page.markdown(papers, chosen.repeat), encoding="utf-8")
            plots = chosen.guide.parent / "plots"
            plots.mkdir(exist_ok=True)
            for figure in figures:
                figure.store(plots)
        (chosen.out / "figures.json").write_text(page.machine_readable(papers, chosen.repeat), encoding="utf-8")
    except OSError as error:
        print(f"make figures: {error}", file=sys.stderr)
        return 1
    agreeing = sum(figure.agrees for figure in figures)
    bounds = [bound for paper in papers for bound in paper.bounds]
    kept = sum(bound.holds for bound in bounds)
    verdict = f"{agreeing} of {len(figures)} figures agree, {kept} of {len(bounds)} bounds are kept"
    print(f"{chosen.out / 'figures.html'}: {verdict} ({time.monotonic() - start:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())

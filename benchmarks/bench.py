"""Every figure of speed and memory, side by side on this machine, in turn and repeated.

    python benchmarks/bench.py [--out FOLDER] [--quick] [--only PATTERN] [--rounds 7] [--list]

Prints a table, and writes it to FOLDER/bench.md and every single run to FOLDER/bench.json. Inputs and outputs of the
whole job stay in FOLDER while it runs: 6 GB, and 20 GB with the memory of 4,000,000 rows, which is left out where the
disk has less. --only takes the contests whose name matches a regular expression; --quick smaller inputs and fewer
rounds, so that what a process costs by its start weighs more than in the table.
"""

import argparse
import json
import re
from pathlib import Path

from speed import environment


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("bench-results"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", metavar="PATTERN")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--list", action="store_true", help="names of the contests, and no more")
    asked = parser.parse_args()
    removed = environment.clean()
    # Not before: these load BLAS.
    from speed import machine, run
    from speed.contest import Setting

    contests = [contest for contest in run.CONTESTS if re.search(asked.only, contest.name)]
    if asked.list:
        print("\n".join(contest.name for contest in contests))
        return
    asked.out.mkdir(parents=True, exist_ok=True)
    rounds = asked.rounds or (3 if asked.quick else 7)
    setting = Setting(asked.out.resolve(), machine.cores(), rounds, asked.quick)
    report = {"machine": machine.describe(), "removed": removed, "rounds": rounds, "quick": asked.quick}
    json_file, table_file = asked.out / "bench.json", asked.out / "bench.md"
    table: list[str] = []
    results = report["contests"] = {}
    for lines, record in run.run(contests, setting):
        table += lines
        results |= record
        print("\n".join(lines), flush=True)
        # After every contest, since all of them take a while.
        json_file.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
        table_file.write_text("\n".join(table) + "\n")


if __name__ == "__main__":
    main()

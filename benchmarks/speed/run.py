"""All contests, one after the other."""

import gc
from collections.abc import Iterator, Sequence

from speed import in_memory, scaling, start_up, table, whole_job, whole_memory
from speed.contest import Contest, Setting, take_turns

CONTESTS = (
    *start_up.CONTESTS,
    *whole_job.CONTESTS,
    *in_memory.CONTESTS,
    *scaling.CONTESTS,
    *whole_memory.CONTESTS,
)


def run(contests: Sequence[Contest], setting: Setting) -> Iterator[tuple[list[str], dict[str, object]]]:
    """Lines of the table, and the record of each contest."""
    yield list(table.HEAD), {}
    for contest in contests:
        if setting.quick and contest.full_only:
            continue
        sides = contest.prepare(setting)
        if not sides:
            continue
        runs = take_turns(sides, setting.rounds)
        lines = [line for line in contest.lines if {line.ours, line.theirs or line.ours} <= runs.keys()]
        results = [table.result(line, runs) for line in lines]
        yield [table.row(found) for found in results], {contest.name: {"lines": results, "runs": runs}}
        del sides
        gc.collect()  # inputs of a gigabyte

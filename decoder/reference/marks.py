"""Why events are missing: docs/reference/format/ends.md, and docs/reference/output.md, "Marks"."""

REASONS = {"stop": "memory", "stream": "timeout", "ring": "overwritten"}


def marks(trace, launch, account, warp, events):
    """Marks before a warp's events and behind them, as (name, lost, why)."""
    before, after = [], []
    if not launch.is_chosen(warp):
        return before, after
    if account is not None and account.lost:
        why = REASONS.get(trace.metadata.policy, "unknown")
        (after if why == "memory" else before).append(("[lost]", account.lost, why))
    has_line = events > 0 or bool(before or after)
    is_ended = launch.number in trace.ends
    if has_line and (account.unfinished if account is not None else True):
        why = "died" if account is not None or is_ended else "unknown"
        after.append(("[unfinished]", 0, why))
    return before, after

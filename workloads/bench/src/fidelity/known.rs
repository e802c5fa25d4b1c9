//! Locations where the simulator's events are known to differ from the card's, with the reasons.

pub(super) fn reason(program: &str, location: Option<&String>) -> Option<&'static str> {
    let location = location?;
    KNOWN
        .iter()
        .find(|(of, names, _)| *of == program && (names.is_empty() || names.contains(&location.as_str())))
        .map(|(.., reason)| *reason)
}

/// Program, names of locations (empty for all), reason.
const KNOWN: &[(&str, &[&str], &str)] = &[
    ("stress", &["SPIN"], "the compiler unrolls the loop: lanes leave it in different copies of its body"),
    (
        "stress",
        &["QUIT"],
        "a predicate and no branch in the untraced kernel; the traced one has as many as the simulator",
    ),
    (
        "dmr",
        &[
            "RING",
            "RING_TAKEN",
            "CHECK_HELD",
            "FIRM",
            "CHECK_LOST",
            "VERIFY_HELD",
            "VERIFY_LOST",
            "VERIFY_DONE",
        ],
        "each `return` of `holds` decides the caller's branch, so lanes go there without meeting",
    ),
    (
        "dmr",
        &["EDGE", "ENCROACHED", "SEGMENT_KEPT", "INNER", "CROSS", "FRONTIER"],
        "the loop's `continue` is a jump back of its own, so lanes do not meet at the end of its body",
    ),
    ("dmr", &["GROWN", "CLAIMED"], "what `grow` returns decides the caller's branches, as in `holds`"),
    (
        "dmr",
        &[
            "RECLAIM_OWN_FIRM",
            "RECLAIM_RING",
            "RECLAIM_RING_FIRM",
            "RECLAIM_BLOCKED",
            "RECLAIM_FREE",
            "RECLAIM_CLAIM",
            "RECLAIM_DONE",
        ],
        "where `blocked` is set it is known, so lanes go from there to where the loops end, without meeting",
    ),
    (
        "mst",
        &[
            "WALK",
            "LIGHTER_AT_FIRST",
            "HEAVIER_AT_FIRST",
            "LIGHTER_AT_SECOND",
            "HEAVIER_AT_SECOND",
            "CLIMB",
            "BELOW_ROOT",
            "AT_ROOTS",
            "OVERTAKEN",
            "LINKED",
            "MERGE_DONE",
        ],
        "asynchronous: depends on which lanes come first",
    ),
    ("mis", &[], "asynchronous: depends on which lanes come first"),
];

//! Availability of options by the way to record.

/// A way to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Door {
    /// A command that runs its own kernels.
    Command,
    /// `warptrace run`: a program that launches its kernels itself.
    Run,
    /// The library: `TraceBuilder`.
    Library,
}

/// The reasons why options are not available at some doors. All messages come from here.
const REFUSALS: [(&[Door], &[&str], &str); 5] = [
    (
        &[Door::Run],
        &["policy stream", "stall_limit"],
        "a program that launches its kernels itself cannot be made to wait while logs are emptied: \
         record with `stop` and more memory, or a window",
    ),
    (
        &[Door::Command, Door::Library],
        &["points"],
        "the trace points of one's own kernels stand in their source",
    ),
    (
        &[Door::Command, Door::Library],
        &["wait", "sync", "launch_limit", "on_hang"],
        "one's own launches are waited for one by one",
    ),
    (
        &[Door::Command, Door::Library],
        &["other_architecture"],
        "one's own kernels are compiled from one PTX, traced or not",
    ),
    (&[Door::Command, Door::Library], &["manual"], "a program of one's own starts the trace where it likes"),
];

/// Returns why an option, given by its name in the specification, is unavailable; `None` if it is available.
pub fn refusal(door: Door, option: &str) -> Option<&'static str> {
    let found =
        REFUSALS.iter().find(|(doors, options, _)| doors.contains(&door) && options.contains(&option));
    found.map(|(_, _, reason)| *reason)
}

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
        "the source of your own kernels contains the trace points",
    ),
    (
        &[Door::Command, Door::Library],
        &["wait", "sync", "launch_limit", "on_hang"],
        "the recorder waits for each launch of your own kernels",
    ),
    (
        &[Door::Command, Door::Library],
        &["other_architecture"],
        "your own kernels are compiled from one PTX, both traced and untraced",
    ),
    (&[Door::Command, Door::Library], &["manual"], "your own program starts the trace itself"),
];

/// Returns why an option, given by its name in the specification, is unavailable; `None` if it is available.
pub fn refusal(door: Door, option: &str) -> Option<&'static str> {
    let found =
        REFUSALS.iter().find(|(doors, options, _)| doors.contains(&door) && options.contains(&option));
    found.map(|(_, _, reason)| *reason)
}

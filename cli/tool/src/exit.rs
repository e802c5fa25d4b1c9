//! Exit codes, as `--help` names them.

/// The command could not do its work.
pub const ERROR: u8 = 1;
/// The trace is incomplete or damaged: `verify` read it and found it so, or a recording lost events or was
/// interrupted in a kernel.
pub const FINDINGS: u8 = 3;
/// `diff` found more change than `--fail-above` allows.
pub const ABOVE: u8 = 4;

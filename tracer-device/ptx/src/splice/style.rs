//! Style of the sequences of a function.

use warptrace_abi::recording::{Placement, Recording};

use super::sites::Sites;
use crate::Body;

/// Placement of the atomic that reserves a segment within a program's loop. `ptxas` puts a `YIELD` at the
/// head of a loop with an atomic that returns a value, because the loop may wait for another thread. A
/// `YIELD` releases lanes that wait at a convergence barrier, so lanes diverge that stay together in the
/// untraced kernel. Observed with `ptxas` 13.0 and 13.5: for `sm_90` and later, only in functions with a call
/// (also a call that the assembler makes for some divisions) and in loops that the atomic's result may end;
/// for earlier architectures, in every loop with an unknown number of iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// In place: no `YIELD`.
    Plain,
    /// In a separate loop that runs once, whose `YIELD` executes only when a segment is reserved.
    OwnLoop,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// The recording. Counts no loops if the function has no countable loops.
    pub(super) recording: Recording,
    pub(super) placement: Placement,
    /// Whether votes name their lanes.
    pub(super) sync: bool,
    /// Whether diverged lanes of a warp run independently.
    pub(super) apart: bool,
    pub(super) is_entry: bool,
    /// Whether the kernel calls functions that record, or this is such a function.
    pub(super) with_descriptor: bool,
    pub(super) claim: Claim,
    /// A location below 2^15 where a repetition takes one instruction less, and the end of any run two more.
    /// Its number in a record is 0xffff, and all other locations of the function are below 2^15, so one
    /// comparison checks both the location and whether the count has room.
    pub(super) hot: Option<u16>,
    pub(super) sites: Sites,
}

/// Returns true if a function waits or calls, or has divisions or roots for which the assembler makes calls.
pub(super) fn waits_or_calls(body: &Body<'_>) -> bool {
    body.instructions().any(|(_, instruction)| match instruction.name() {
        // A kernel that sleeps waits for another thread.
        "call" | "nanosleep" => true,
        "div" | "rem" => {
            ["rn", "rz", "rm", "rp", "u64", "s64"].iter().any(|one| instruction.has_modifier(one))
        }
        "rcp" | "sqrt" => !instruction.has_modifier("approx"),
        _ => false,
    })
}

//! How the sequences of a function are written.

use warptrace_abi::recording::{Placement, Recording};

use super::sites::Sites;
use crate::Body;

/// How the atomic that claims a segment stands in a program's loop.
///
/// `ptxas` puts a `YIELD` at the head of a loop with an atomic that returns a value, for it might wait for
/// another thread. A `YIELD` lets lanes go that wait at a convergence barrier, and so parts lanes that the
/// untraced kernel keeps together. Seen with `ptxas` 13.0 and 13.5: for `sm_90` and later it does so only in
/// functions with a call (which the assembler itself makes for some divisions), and in loops that end when
/// the atomic's answer says so; for earlier architectures in every loop of which it cannot tell how often it
/// goes round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// As it is: no `YIELD`.
    Plain,
    /// In a loop of its own, which runs once: the `YIELD` stands at that loop's head, and is executed only
    /// when a segment is claimed.
    OwnLoop,
}

/// How the sequences of a function are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// What is recorded; it counts no loops if the function has none that could be.
    pub(super) recording: Recording,
    /// Where records are in this function.
    pub(super) placement: Placement,
    /// Whether votes name their lanes.
    pub(super) sync: bool,
    /// Whether lanes of a warp run apart where the program parts them.
    pub(super) apart: bool,
    /// Whether this is a kernel; else a function that one calls.
    pub(super) is_entry: bool,
    /// Whether the kernel calls functions that record, or this is one.
    pub(super) with_descriptor: bool,
    /// How segments are claimed.
    pub(super) claim: Claim,
    /// A location below 2^15 at which a repetition takes an instruction less, and the end of any run two
    /// more. In a record it is 0xffff, and no other location of the function is 2^15 or above: one comparison
    /// tells both that the record is at this location and that its count has room.
    pub(super) hot: Option<u16>,
    /// The sites that record.
    pub(super) sites: Sites,
}

/// Whether a function waits for others, or the assembler makes calls in it: those that stand there, and those
/// of its own for some divisions and roots.
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

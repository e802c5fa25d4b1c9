//! Locations as a kernel's source declares them: the table that `#[warptrace::kernels]` makes.

use core::fmt;

/// The construct of the source that a location stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum LocationKind {
    /// A trace point that was written by hand.
    #[default]
    Marked,
    /// A function was entered.
    Entry,
    /// A condition held, a pattern matched, or `?` had a value.
    Then,
    /// A condition did not hold, a pattern did not match, or `?` returned early.
    Else,
    /// An arm of `match` was taken.
    Arm,
    /// An iteration of a loop began.
    LoopBody,
    /// A loop ended.
    LoopExit,
    /// A `return` was reached.
    Return,
}

impl LocationKind {
    /// Says in a few words what an event at such a location means.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Marked => "marked by hand",
            Self::Entry => "function entered",
            Self::Then => "condition holds",
            Self::Else => "condition does not hold",
            Self::Arm => "arm taken",
            Self::LoopBody => "iteration begins",
            Self::LoopExit => "loop ended",
            Self::Return => "return reached",
        }
    }
}

impl fmt::Display for LocationKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::Marked => "marked",
            Self::Entry => "entry",
            Self::Then => "then",
            Self::Else => "else",
            Self::Arm => "arm",
            Self::LoopBody => "loop body",
            Self::LoopExit => "loop exit",
            Self::Return => "return",
        })
    }
}

/// A location with its position in the source and in the structure of its function.
///
/// Locations nest: the arm of a branch lies in the loop body, arm or function whose location is its
/// [`parent`](Self::parent). Parents have smaller ids than what they enclose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// The id, from 1.
    pub id: u16,
    /// Readable name, made from the source.
    pub name: &'static str,
    /// The function in which it stands.
    pub function: &'static str,
    /// The construct that it stands for.
    pub kind: LocationKind,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Id of the location that directly encloses this one; 0 for a function's entry.
    pub parent: u16,
    /// Line (from 1) of the end of the construct, where lanes that went another way meet again.
    pub rejoin_line: u32,
    /// Column (in characters, from 1) behind that end.
    pub rejoin_column: u32,
}

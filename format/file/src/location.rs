//! Locations as a kernel's source declares them: the table that `#[warptrace::kernels]` makes.

crate::named_enum! {
    /// The construct of the source that a location stands for.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    #[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
    #[non_exhaustive]
    pub enum LocationKind {
        /// A trace point that was written by hand.
        #[default]
        Marked = "marked",
        /// A function was entered.
        Entry = "entry",
        /// A condition held, a pattern matched, or `?` had a value.
        Then = "then",
        /// A condition did not hold, a pattern did not match, or `?` returned early.
        Else = "else",
        /// An arm of `match` was taken.
        Arm = "arm",
        /// An iteration of a loop began.
        LoopBody = "loop body",
        /// A loop ended.
        LoopExit = "loop exit",
        /// A `return` was reached.
        Return = "return",
        /// A barrier of the block was reached.
        Barrier = "barrier",
        /// Another wait began: for other threads, for a copy, or for time to pass.
        Wait = "wait",
        /// The wait was over that began at the location with the id before this one, of the kind
        /// [`Barrier`](Self::Barrier) or [`Wait`](Self::Wait).
        Waited = "waited",
    }
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
            Self::Barrier => "barrier reached",
            Self::Wait => "wait begins",
            Self::Waited => "wait is over",
        }
    }
}

/// What the property begins with that tells the [hash](source_hash) of a source file; the file's name
/// follows.
pub const SOURCE_HASH_PREFIX: &str = "source_hash:";

/// Computes FNV-1a of the lines of a source file, whatever ends them: it differs when a line does.
pub fn source_hash(text: &str) -> u64 {
    let bytes = text.lines().flat_map(|line| line.bytes().chain(*b"\n"));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_lines() {
        assert_eq!(source_hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(source_hash("a"), source_hash("a\r\n"));
        assert_ne!(source_hash("a"), source_hash("a\n\n"));
        assert_ne!(source_hash("ab"), source_hash("a\nb"));
    }
}

//! Locations as the kernel's source declares them: the table that `#[warptrace::kernels]` generates.

crate::named_enum! {
    /// Source construct at a location.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    #[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
    #[non_exhaustive]
    pub enum LocationKind {
        /// A trace point written by hand.
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
        /// Another wait began: for other threads, for a copy, or for an amount of time.
        Wait = "wait",
        /// A wait ended that began at the previous id, a [`Barrier`](Self::Barrier) or [`Wait`](Self::Wait).
        Waited = "waited",
    }
}

impl LocationKind {
    /// Returns the meaning of an event at such a location, in a few words.
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

/// Prefix of the property for a source file's [hash](source_hash), before the file's name.
pub const SOURCE_HASH_PREFIX: &str = "source_hash:";

/// Computes the FNV-1a hash of the lines of a source file. Line endings do not change the hash.
pub fn source_hash(text: &str) -> u64 {
    let bytes = text.lines().flat_map(|line| line.bytes().chain(*b"\n"));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// A location with its position in the source and in the structure of its function. Locations nest in loop
/// bodies, arms and functions ([`parent`](Self::parent)). A parent has a smaller id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// Location id, from 1.
    pub id: u16,
    /// Readable name, derived from the source.
    pub name: &'static str,
    /// Name of the enclosing function.
    pub function: &'static str,
    /// Source construct.
    pub kind: LocationKind,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Id of the directly enclosing location; 0 for a function's entry.
    pub parent: u16,
    /// Line (from 1) of the end of the construct, where diverged lanes reconverge.
    pub rejoin_line: u32,
    /// Column (in characters, from 1) after that end.
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

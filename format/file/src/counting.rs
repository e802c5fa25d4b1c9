//! Counted loops.

crate::named_enum! {
    /// Selects the loops without other trace points that record the number of their iterations at their end.
    /// Counting takes one instruction per iteration, an event six or more.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    #[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
    #[cfg_attr(feature = "std", serde(rename_all = "lowercase"))]
    pub enum Counting {
        /// No loop: each event is recorded where it happens.
        Never = "never",
        /// Loops whose lanes provably stay together. Counting does not change the recorded events.
        #[default]
        Proven = "proven",
        /// All loops, as if their lanes ran in lock step. The masks of events may differ from the kernel's.
        All = "all",
    }
}

impl Counting {
    /// Describes which loops are counted.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Never => "no loop: each event was recorded where it happened",
            Self::Proven => "loops that provably have the same events when they are counted",
            Self::All => {
                "all loops that hold no other trace point, as if their lanes ran in lock step: masks can differ \
                 from the kernel's"
            }
        }
    }

    /// Returns the assumption of the recorded events, or `None` if they are exactly the kernel's events.
    pub const fn assumption(self) -> Option<&'static str> {
        match self {
            Self::All => Some("as if lanes ran counted loops in lock step"),
            Self::Never | Self::Proven => None,
        }
    }
}

//! Which loops of a kernel count their iterations.

crate::named_enum! {
    /// Which loops that hold no other trace point count their iterations and are recorded where they end, rather
    /// than event by event. Counting takes one instruction an iteration; an event takes six or more.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    #[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
    #[cfg_attr(feature = "std", serde(rename_all = "lowercase"))]
    pub enum Counting {
        /// None: each event is recorded where it happens.
        Never = "never",
        /// Those of which the kernel's code proves that the lanes which enter one together go through it, and
        /// leave it, together. What is recorded are the same events.
        #[default]
        Proven = "proven",
        /// All, as if the lanes that leave a loop together had run it in lock step: of each lane the same events,
        /// but masks may be others than the kernel's.
        All = "all",
    }
}

impl Counting {
    /// Which loops are counted, in words.
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

    /// What a reader of the trace has to know of it first; `None` if the events are those of the kernel.
    pub const fn assumption(self) -> Option<&'static str> {
        match self {
            Self::All => Some("as if lanes ran counted loops in lock step"),
            Self::Never | Self::Proven => None,
        }
    }
}

//! Which loops of a kernel count their iterations.

/// Which loops that hold no other trace point count their iterations and are recorded where they end, rather
/// than event by event. Counting takes one instruction an iteration; an event takes six or more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "std", serde(rename_all = "lowercase"))]
pub enum Counting {
    /// None: each event is recorded where it happens.
    Never,
    /// Those of which the kernel's code proves that the lanes which enter one together go through it, and
    /// leave it, together. What is recorded are the same events.
    #[default]
    Proven,
    /// All, as if the lanes that leave a loop together had run it in lock step: of each lane the same events,
    /// but masks may be others than the kernel's.
    All,
}

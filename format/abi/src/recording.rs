//! The form in which a traced kernel records, for PTX splicing, the simulator and requests to devices.

use core::fmt;

use warptrace_format::Counting;
use warptrace_format::chosen::After;

/// The form in which a traced kernel records. Equal sources and `Recording`s give the same code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Recording {
    /// Loops that count their iterations and record the count at their end. The simulator proves no loop.
    pub counting: Counting,
    /// True if each event is also recorded on a second track, as a separate entry.
    pub dual: bool,
    /// Kind of logs that the kernel writes.
    pub logs: LogKind,
    /// True if the kernel checks which of its warps record ([`warptrace_format::chosen`]); the others run the
    /// original instructions. If false, all warps record. The simulator always checks.
    pub chooses: bool,
    /// Start of recording in each lane; `None`: the lane's start. `Some` excludes [`Counting::All`].
    pub after: Option<After>,
    /// Storage of the lanes' records; `None` selects it per kernel. The simulator ignores this field.
    pub placement: Option<Placement>,
    /// True if each warp writes where and when it ran: a [`WarpSpan`](warptrace_format::span::WarpSpan).
    pub spans: bool,
    /// State spaces whose accesses are recorded, and whether values are, on the track after the event tracks.
    /// Requires [kept](LogKind::Kept) logs, recording from the lanes' start, and no second track.
    pub data: Spaces,
    /// True if points at waits of `#[warptrace::kernels]` record ([`crate::marker::EVENT_AT_WAIT`]).
    pub waits: bool,
}

impl Recording {
    /// Records whole kernels, in logs that stay until the kernel ends.
    pub const DEFAULT: Self = Self {
        counting: Counting::Proven,
        dual: false,
        logs: LogKind::Kept,
        chooses: false,
        after: None,
        placement: None,
        spans: false,
        data: Spaces::NONE,
        waits: false,
    };

    /// Returns the number of tracks: one of events, two if `dual`, and one more for data.
    #[must_use]
    pub const fn tracks(&self) -> u32 {
        1 + self.dual as u32 + self.has_data() as u32
    }

    /// Returns the track of data, if it exists.
    #[must_use]
    pub const fn data_track(&self) -> Option<u32> {
        if self.has_data() { Some(1 + self.dual as u32) } else { None }
    }

    /// Returns true if addresses or values are recorded.
    #[must_use]
    pub const fn has_data(&self) -> bool {
        !self.data.is_none()
    }

    /// Returns which loops are counted. If recording starts [after](Self::after) an event, proven loops are
    /// not counted, because each event needs its time.
    #[must_use]
    pub fn counted(&self) -> Counting {
        let each = self.after.is_some();
        if each && self.counting == Counting::Proven { Counting::Never } else { self.counting }
    }
}

impl Default for Recording {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Recorded state spaces, and whether values are. Accesses by generic addresses are recorded if any space is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Spaces {
    /// Global memory.
    pub global: bool,
    /// Shared memory of the block and of its cluster.
    pub shared: bool,
    /// Local memory.
    pub local: bool,
    /// Values that the source names. They belong to no space.
    pub values: bool,
}

impl Spaces {
    /// Nothing.
    pub const NONE: Self = Self { global: false, shared: false, local: false, values: false };
    /// All spaces and values.
    pub const ALL: Self = Self { global: true, shared: true, local: true, values: true };
    /// Only values.
    pub const VALUES: Self = Self { values: true, ..Self::NONE };

    /// Returns true if nothing is recorded.
    #[must_use]
    pub const fn is_none(self) -> bool {
        !(self.has_memory() || self.values)
    }

    /// Returns true if a state space is recorded.
    #[must_use]
    pub const fn has_memory(self) -> bool {
        self.global || self.shared || self.local
    }

    /// Returns the names of the recorded spaces.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let all = [
            (self.global, "global"),
            (self.shared, "shared"),
            (self.local, "local"),
            (self.values, "values"),
        ];
        all.into_iter().filter_map(|(is_there, name)| is_there.then_some(name))
    }
}

impl fmt::Display for Spaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ALL {
            return f.write_str("all");
        }
        for (number, name) in self.names().enumerate() {
            write!(f, "{}{name}", if number == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// Error of parsing [`Spaces`]: a word is not a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownSpaces;

impl fmt::Display for UnknownSpaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("say all, or which of global, shared, local and values, with commas between them")
    }
}

impl core::error::Error for UnknownSpaces {}

impl core::str::FromStr for Spaces {
    type Err = UnknownSpaces;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut spaces = Self::NONE;
        for word in text.split(',').map(str::trim) {
            match word {
                "all" => spaces = Self::ALL,
                "global" => spaces.global = true,
                "shared" => spaces.shared = true,
                "local" => spaces.local = true,
                "values" => spaces.values = true,
                _ => return Err(UnknownSpaces),
            }
        }
        Ok(spaces)
    }
}

/// Kind of logs that a traced kernel writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogKind {
    /// Logs that stay until the kernel ends ([`crate::log`]). Runs that find no memory are lost.
    Kept,
    /// Logs that stay until the kernel ends, as rings that keep each lane's latest runs.
    Ring,
    /// Logs that the host empties while the kernel runs ([`crate::stream`]).
    Streamed,
}

impl LogKind {
    /// Returns true if the host empties the logs while the kernel runs.
    #[must_use]
    pub const fn is_streamed(self) -> bool {
        matches!(self, Self::Streamed)
    }
}

warptrace_format::named_enum! {
    /// Storage of each lane's record in a traced kernel.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Placement {
        /// Registers: eight per lane, three more for the second track. All trace points are in the kernel.
        Registers = "registers",
        /// Dynamic shared memory of the block, which the launch enlarges ([`crate::shared`]).
        Shared = "shared",
        /// Local memory, which stays in the L1 cache. All trace points are in the kernel itself.
        Local = "local",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_are_read_as_they_print() {
        for (text, spaces) in [
            ("all", Spaces::ALL),
            ("global", Spaces { global: true, ..Spaces::NONE }),
            ("shared,local,values", Spaces { global: false, ..Spaces::ALL }),
            ("values", Spaces::VALUES),
        ] {
            assert_eq!((text.parse(), spaces.to_string().as_str()), (Ok(spaces), text));
        }
        assert_eq!("local, global,values,shared".parse(), Ok(Spaces::ALL));
        assert_eq!(["", "global,", "const"].map(str::parse::<Spaces>), [Err(UnknownSpaces); 3]);
    }

    #[test]
    fn data_has_the_last_track() {
        let recording = Recording { data: Spaces::ALL, ..Recording::DEFAULT };
        assert_eq!((recording.tracks(), recording.data_track()), (2, Some(1)));
        assert_eq!((Recording::DEFAULT.tracks(), Recording::DEFAULT.data_track()), (1, None));
    }
}

//! What a traced kernel records, and in which form: what is spliced for a GPU, what the simulator does, and
//! what devices are asked for.

use core::fmt;

use warptrace_format::Counting;
use warptrace_format::chosen::After;

/// What a traced kernel records, and in which form. Two kernels of the same source are the same code if this
/// is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Recording {
    /// Which loops count their iterations, and record them where they end. On the simulator none is proven.
    pub counting: Counting,
    /// Whether each event is recorded on a second track too, as an entry of its own.
    pub dual: bool,
    /// Which logs the kernel writes.
    pub logs: LogKind,
    /// Whether the kernel looks which of its warps were chosen ([`warptrace_format::chosen`]); the others run
    /// its own instructions. If not, all warps record. The simulator always looks.
    pub chooses: bool,
    /// From where on lanes are recorded; `None`: from their start on. Loops cannot be
    /// [counted](Counting::All) then.
    pub after: Option<After>,
    /// Where lanes keep their records; `None` chooses for each kernel. The simulator ignores it.
    pub placement: Option<Placement>,
    /// Whether each warp writes where and when it ran: a [`WarpSpan`](warptrace_format::span::WarpSpan).
    pub spans: bool,
    /// Of which state spaces accesses are recorded, and whether values are ([`crate::data`]), on a track
    /// behind those of events. Only in logs that are [kept](LogKind::Kept), of lanes that are recorded from
    /// their start on, and with no second track. (Which sites have markers says who makes these; all markers
    /// record.)
    pub data: Spaces,
    /// Whether points at waits of `#[warptrace::kernels]` record ([`crate::marker::EVENT_AT_WAIT`]). (Of
    /// other kernels, who makes their markers says which points there are.)
    pub waits: bool,
}

impl Recording {
    /// All of a kernel, in logs that stay until it has ended.
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

    /// Returns how many tracks it has: one of events, two if it is dual, and one of data.
    #[must_use]
    pub const fn tracks(&self) -> u32 {
        1 + self.dual as u32 + self.has_data() as u32
    }

    /// Returns the track of data, if it has one.
    #[must_use]
    pub const fn data_track(&self) -> Option<u32> {
        if self.has_data() { Some(1 + self.dual as u32) } else { None }
    }

    /// Returns whether addresses or values are recorded.
    #[must_use]
    pub const fn has_data(&self) -> bool {
        !self.data.is_none()
    }

    /// Returns which loops are counted: none where the time of each event matters, if that is not to be told.
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

/// State spaces whose accesses are recorded, and whether named values are. Accesses by generic addresses,
/// which may lead to each of the spaces, are recorded with any of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Spaces {
    /// Global memory.
    pub global: bool,
    /// Shared memory, of the block and of its cluster.
    pub shared: bool,
    /// Local memory.
    pub local: bool,
    /// No space: the values that the source names.
    pub values: bool,
}

impl Spaces {
    /// None of them.
    pub const NONE: Self = Self { global: false, shared: false, local: false, values: false };
    /// All of them, and values.
    pub const ALL: Self = Self { global: true, shared: true, local: true, values: true };
    /// Values alone.
    pub const VALUES: Self = Self { values: true, ..Self::NONE };

    /// Returns whether there is none.
    #[must_use]
    pub const fn is_none(self) -> bool {
        !(self.has_memory() || self.values)
    }

    /// Returns whether there is a state space among them.
    #[must_use]
    pub const fn has_memory(self) -> bool {
        self.global || self.shared || self.local
    }

    /// Returns the names of those that there are.
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

/// The error of reading [`Spaces`] from text in which a word names none.
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

/// Which logs a traced kernel writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogKind {
    /// Logs that stay until the kernel has ended ([`crate::log`]). What finds no room is lost.
    Kept,
    /// The same as rings, which keep each lane's latest runs.
    Ring,
    /// Logs that the host empties while the kernel runs ([`crate::stream`]).
    Streamed,
}

impl LogKind {
    /// Returns whether the host empties the logs while the kernel runs.
    #[must_use]
    pub const fn is_streamed(self) -> bool {
        matches!(self, Self::Streamed)
    }
}

warptrace_format::named_enum! {
    /// Where a traced kernel keeps each lane's record.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Placement {
        /// In registers: eight a lane, and three for the second track. Only where all trace points stand in
        /// the kernel itself.
        Registers = "registers",
        /// In the block's dynamic shared memory, which a launch makes larger ([`crate::shared`]).
        Shared = "shared",
        /// In local memory: global memory that is each thread's own and stays in the first cache. Only where
        /// all trace points stand in the kernel itself.
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

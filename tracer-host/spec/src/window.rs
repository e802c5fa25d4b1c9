//! The part of a program that is recorded. A [`Window`] selects kernels, ranges of the program, launches,
//! blocks and warps. Warps that satisfy all criteria are recorded. A launch without recorded warps runs the
//! program's own kernel, untraced. In other launches, unrecorded warps run the kernel's own instructions. The
//! file stores the selection of each launch, so that these warps are not counted as losses.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use warptrace_format::chosen::ChosenWarps;
use warptrace_format::file::LaunchInfo;
use warptrace_format::fits;

use crate::Visits;

/// Error of parsing a part of a window.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WindowError {
    /// The text is not a range.
    #[error("`{text}` is no range of numbers: write 3, 3..7 (which ends before 7), 3..=7, 3.. or ..7")]
    Range {
        /// The text.
        text: String,
    },
    /// The range contains no number.
    #[error(
        "`{text}` holds no number: the end of a range is larger than its start, or, with `..=`, as large"
    )]
    Empty {
        /// The text.
        text: String,
    },
    /// The text is not a valid fraction of the blocks.
    #[error("`{text}` is no part of all blocks: write 1/64 for the blocks 0, 64, 128 and so on")]
    Part {
        /// The text.
        text: String,
    },
    /// The text is not a location with a count.
    #[error("write a location and a count from 1 on, as in STEP:1000 or main.rs:12:1000")]
    Visits {
        /// The text.
        text: String,
    },
}

/// Nonempty range of consecutive numbers, written as in Rust: `3`, `3..7`, `3..=7`, `3..`, `..7`, `..=7`,
/// `..`.
///
/// ```
/// use warptrace_spec::NumberRange;
/// let range: NumberRange = "3..7".parse()?;
/// assert!(range.contains(6) && !range.contains(7));
/// assert_eq!(range, "3..=6".parse()?);
/// assert!("7..3".parse::<NumberRange>().is_err());
/// # Ok::<(), warptrace_spec::WindowError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NumberRange {
    first: u32,
    last: u32,
}

impl NumberRange {
    /// All numbers.
    pub const ALL: Self = Self { first: 0, last: u32::MAX };

    /// Returns the numbers from `first` to `last`, both included; `None` if `last` is smaller.
    pub const fn new(first: u32, last: u32) -> Option<Self> {
        if first <= last { Some(Self { first, last }) } else { None }
    }

    /// Returns true if the range contains a number.
    pub const fn contains(self, number: u32) -> bool {
        self.first <= number && number <= self.last
    }
}

impl Default for NumberRange {
    fn default() -> Self {
        Self::ALL
    }
}

impl FromStr for NumberRange {
    type Err = WindowError;

    fn from_str(text: &str) -> Result<Self, WindowError> {
        let no_range = || WindowError::Range { text: text.to_owned() };
        let number = |part: &str| match part.bytes().all(|byte| byte.is_ascii_digit()) {
            true => part.parse::<u32>().map_err(|_| no_range()),
            // `parse` accepts a sign.
            false => Err(no_range()),
        };
        let Some((first, end)) = text.split_once("..") else {
            let only = number(text)?;
            return Ok(Self { first: only, last: only });
        };
        let first = if first.is_empty() { 0 } else { number(first)? };
        let last = match end.strip_prefix('=') {
            Some(last) => Some(number(last)?),
            None if end.is_empty() => Some(u32::MAX),
            None => number(end)?.checked_sub(1),
        };
        last.and_then(|last| Self::new(first, last))
            .ok_or_else(|| WindowError::Empty { text: text.to_owned() })
    }
}

impl fmt::Display for NumberRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ALL => write!(out, ".."),
            Self { first, last } if first == last => write!(out, "{first}"),
            Self { first, last: u32::MAX } => write!(out, "{first}.."),
            Self { first, last } => write!(out, "{first}..={last}"),
        }
    }
}

/// Blocks of a launch, by linear index: a [range](NumberRange), or `1/K` for the multiples of K.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockChoice {
    range: NumberRange,
    step: NonZeroU32,
}

impl BlockChoice {
    /// All blocks.
    pub const ALL: Self = Self { range: NumberRange::ALL, step: NonZeroU32::MIN };

    /// Returns the blocks of this range.
    pub const fn range(range: NumberRange) -> Self {
        Self { range, ..Self::ALL }
    }

    /// Returns the blocks whose index is a multiple of `step`.
    pub const fn every(step: NonZeroU32) -> Self {
        Self { step, ..Self::ALL }
    }
}

impl Default for BlockChoice {
    fn default() -> Self {
        Self::ALL
    }
}

impl FromStr for BlockChoice {
    type Err = WindowError;

    fn from_str(text: &str) -> Result<Self, WindowError> {
        let Some((one, step)) = text.split_once('/') else { return Ok(Self::range(text.parse()?)) };
        let step = Some(step).filter(|step| one == "1" && step.bytes().all(|byte| byte.is_ascii_digit()));
        let step = step.and_then(|step| step.parse().ok());
        step.map(Self::every).ok_or_else(|| WindowError::Part { text: text.to_owned() })
    }
}

impl fmt::Display for BlockChoice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            NonZeroU32::MIN => self.range.fmt(out),
            step => write!(out, "1/{step}"),
        }
    }
}

/// Which part of a program is recorded: what fulfils all of it. The default is everything. A RANGE is written
/// as in Rust: `3`, `3..7`, `3..=7`, `3..`, `..7`.
///
/// ```
/// use warptrace_spec::Window;
/// let window = Window { launches: "10..20".parse()?, blocks: "1/64".parse()?, ..Window::default() };
/// assert_eq!(window.to_string(), "launches 10..=19, blocks 1/64");
/// # Ok::<(), warptrace_spec::WindowError>(())
/// ```
// The comments of the fields are also the text of `--help`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(
    feature = "clap",
    command(
        next_help_heading = "What to record (by default everything; ranges as in Rust: 3, 3..7, 3..=7, 3.., ..7)"
    )
)]
#[serde(default, deny_unknown_fields)]
pub struct Window {
    /// Only this kernel, which the program has; `*` stands for any characters; may be given more than once
    #[cfg_attr(feature = "clap", arg(id = "kernels", long = "kernel", value_name = "NAME"))]
    pub kernels: Vec<String>,

    /// Only launches within this range of NVTX, which the program has opened; `*` stands for any characters, and
    /// `NAME@DOMAIN` is a range of a domain. May be given more than once
    #[cfg_attr(feature = "clap", arg(long, value_name = "RANGE"))]
    pub nvtx: Vec<String>,

    /// Only these launches; all launches of the program count, from 0
    #[cfg_attr(
        feature = "clap",
        arg(
            id = "launches",
            long = "launch",
            value_name = "RANGE",
            default_value_t,
            hide_default_value = true
        )
    )]
    #[serde(with = "crate::text")]
    pub launches: NumberRange,

    /// The first N launches of each kernel only
    #[cfg_attr(
        feature = "clap",
        arg(long = "first", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))
    )]
    pub first: Option<u64>,

    /// Only these blocks of each launch, by their linear index; `1/64`: those whose index is a multiple of 64
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "RANGE|1/K", default_value_t, hide_default_value = true)
    )]
    #[serde(with = "crate::text")]
    pub blocks: BlockChoice,

    /// Only these warps of each block, by their number in it
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "RANGE", default_value_t, hide_default_value = true)
    )]
    #[serde(with = "crate::text")]
    pub warps: NumberRange,

    /// In each launch, record lanes from their COUNTth visit of a location on. LOCATION is a name or id, as
    /// `info` lists them, or FILE:LINE. A lane is also recorded from its first event together with a
    /// recorded lane. Earlier events do not count as lost
    #[cfg_attr(feature = "clap", arg(long, value_name = "LOCATION:COUNT"))]
    #[serde(with = "crate::text::option")]
    pub after: Option<Visits>,

    /// No launch after those that have recorded N events; a launch that has begun is recorded to its
    /// end
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub max_events: Option<u64>,
}

impl Window {
    /// Returns true if everything is recorded.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if kernels must check which of their warps record.
    pub fn looks_inside(&self) -> bool {
        (self.blocks, self.warps) != (BlockChoice::ALL, NumberRange::ALL)
    }

    /// Returns true if a kernel of this name is recorded.
    pub fn names(&self, kernel: &str) -> bool {
        self.kernels.is_empty() || self.kernels.iter().any(|name| fits(name, kernel))
    }

    /// Returns true if the NVTX criterion is satisfied by a launch within these ranges, outer and inner.
    pub fn is_within<'a>(&self, ranges: impl IntoIterator<Item = &'a str>) -> bool {
        let is_named = |range| self.nvtx.iter().any(|pattern| fits(pattern, range));
        self.nvtx.is_empty() || ranges.into_iter().any(is_named)
    }

    /// Returns the first kernel pattern that matches no kernel of `known`.
    pub fn unknown_kernel<'a>(&'a self, known: &[&str]) -> Option<&'a str> {
        let is_known = |pattern: &&String| known.iter().any(|kernel| fits(pattern, kernel));
        self.kernels.iter().find(|pattern| !is_known(pattern)).map(String::as_str)
    }

    /// Returns the warps to record in a launch of `kernel`, after `recorded` recorded events and `launches`
    /// launches of this kernel.
    pub fn choose(&self, kernel: &str, launch: &LaunchInfo, recorded: u64, launches: u64) -> ChosenWarps {
        let is_over = self.max_events.is_some_and(|most| recorded >= most)
            || self.first.is_some_and(|most| launches >= most);
        if !self.names(kernel) || is_over || !self.launches.contains(launch.number()) {
            return ChosenWarps::NONE;
        }
        let blocks = among(self.blocks.range, self.blocks.step.get(), launch.blocks());
        let warps = among(self.warps, 1, launch.warps_per_block());
        let (Some((first_block, blocks)), Some((first_warp, block_warps))) = (blocks, warps) else {
            return ChosenWarps::NONE;
        };
        let block_step = if blocks == 1 { 1 } else { self.blocks.step.get() };
        ChosenWarps { first_block, blocks, block_step, first_warp, block_warps }
    }
}

/// Returns the first multiple of `step` in a range of `0..count`, and their number; `None` if none exists.
fn among(NumberRange { first, last }: NumberRange, step: u32, count: u32) -> Option<(u32, u32)> {
    let first = first.checked_next_multiple_of(step)?;
    let last = last.min(count.checked_sub(1)?);
    (first <= last).then(|| (first, (last - first) / step + 1))
}

impl fmt::Display for Window {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if !self.kernels.is_empty() {
            parts.push(format!("kernels {}", self.kernels.join(" ")));
        }
        if !self.nvtx.is_empty() {
            parts.push(format!("within ranges {}", self.nvtx.join(" ")));
        }
        if self.launches != NumberRange::ALL {
            parts.push(format!("launches {}", self.launches));
        }
        if let Some(first) = self.first {
            parts.push(format!("the first {first} launches of each kernel"));
        }
        if self.blocks != BlockChoice::ALL {
            parts.push(format!("blocks {}", self.blocks));
        }
        if self.warps != NumberRange::ALL {
            parts.push(format!("warps {}", self.warps));
        }
        if let Some(Visits { location, count }) = &self.after {
            parts.push(format!("lanes from visit {count} of location {location} on"));
        }
        if let Some(most) = self.max_events {
            parts.push(format!("launches until {most} events"));
        }
        if parts.is_empty() { write!(out, "everything") } else { write!(out, "{}", parts.join(", ")) }
    }
}

#[cfg(test)]
mod tests;

//! Options for marking.

use std::fmt;
use std::str::FromStr;

use warptrace_abi::recording::Spaces;

use super::LineTable;

/// Positions of points in PTX without markers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Points {
    /// Each reachable basic block.
    #[default]
    Blocks,
    /// Functions, and both sides of each two-way branch. If the block of the taken side has other
    /// predecessors, the branch itself instead of that side.
    Branches,
    /// Functions, and the first block of each loop.
    Loops,
    /// Functions only.
    Functions,
    /// Functions, and the start and end of each wait.
    Waits,
}

impl Points {
    /// All variants, the finest first.
    pub const ALL: [Self; 5] = [Self::Blocks, Self::Branches, Self::Loops, Self::Functions, Self::Waits];

    /// Returns the name that [`FromStr`] accepts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blocks => "blocks",
            Self::Branches => "branches",
            Self::Loops => "loops",
            Self::Functions => "functions",
            Self::Waits => "waits",
        }
    }
}

impl fmt::Display for Points {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

/// Error for a word that is not the name of a variant of [`Points`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` names no points: say blocks, branches, loops, functions or waits")]
pub struct UnknownPoints {
    /// The word.
    pub word: String,
}

impl FromStr for Points {
    type Err = UnknownPoints;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL.into_iter().find(|points| points.name() == word);
        named.ok_or_else(|| UnknownPoints { word: word.to_owned() })
    }
}

/// Options of [`mark`](super::mark).
#[derive(Clone, Copy, Debug)]
pub struct PointOptions<'a> {
    /// Positions of points.
    pub points: Points,
    /// Whether to add the points of waits to any choice of `points`.
    pub waits: bool,
    /// Id of the first point, at least 1.
    pub first_id: u16,
    /// Memory spaces whose accesses get a site, and whether values do.
    pub accesses: Spaces,
    /// Number of the first site, at least 1.
    pub first_site: u16,
    /// The kernels to mark, with all functions that they name. `None` marks all functions.
    pub kernels: Option<&'a [&'a str]>,
    /// Source positions of the text's lines from another origin; `None` uses `.loc`.
    pub lines: Option<&'a LineTable>,
}

impl Default for PointOptions<'_> {
    fn default() -> Self {
        Self {
            points: Points::default(),
            waits: false,
            first_id: 1,
            accesses: Spaces::NONE,
            first_site: 1,
            kernels: None,
            lines: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for points in Points::ALL {
            assert_eq!(points.to_string().parse(), Ok(points));
        }
        let error = "block".parse::<Points>().expect_err("it is no name");
        assert_eq!(
            error.to_string(),
            "`block` names no points: say blocks, branches, loops, functions or waits"
        );
    }
}

//! What to mark.

use std::fmt;
use std::str::FromStr;

use warptrace_abi::recording::Spaces;

use super::LineTable;

/// Where PTX of other compilers is to be traced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Points {
    /// At each basic block that can be reached.
    #[default]
    Blocks,
    /// At functions, and on both sides of each two-way branch; at the branch itself where others too come to
    /// the block that it leads to.
    Branches,
    /// At functions, and at each loop's first block.
    Loops,
    /// At functions only.
    Functions,
    /// At functions, and where lanes wait: before and behind each wait.
    Waits,
}

impl Points {
    /// All of them, the finest first.
    pub const ALL: [Self; 5] = [Self::Blocks, Self::Branches, Self::Loops, Self::Functions, Self::Waits];

    /// Returns the name, as [`FromStr`] reads it.
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

/// The error of reading [`Points`] from a word that names none.
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

/// What [`mark`](super::mark) is to mark.
#[derive(Clone, Copy, Debug)]
pub struct PointOptions<'a> {
    /// Where.
    pub points: Points,
    /// Whether waits are among them whatever they are.
    pub waits: bool,
    /// Id of the first point, from 1.
    pub first_id: u16,
    /// Which accesses to memory get a site, and whether values do.
    pub accesses: Spaces,
    /// Number of the first site, from 1.
    pub first_site: u16,
    /// The kernels to mark, with the functions that they call or whose addresses they take; `None` marks all
    /// functions.
    pub kernels: Option<&'a [&'a str]>,
    /// Where the source has the text's lines, if that is known from elsewhere; `None` reads `.loc`.
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

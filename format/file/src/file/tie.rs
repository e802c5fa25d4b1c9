//! Tie between a section and the section directly before it.

use super::error::FormatError;
use super::fields::Fields;
use super::section::SectionHeader;

/// Section version from which a section begins with a [`Tie`].
pub(super) const TIED_VERSION: u16 = 2;

/// Identifies the section directly before, to which a section belongs, by the checksum of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tie(u32);

impl Tie {
    /// Creates the tie to the section with this header.
    pub const fn to(header: &SectionHeader) -> Self {
        Self(header.body_crc)
    }

    /// Creates the tie to an encoded section. Panics if `section` does not begin with a valid header.
    pub fn to_encoded(section: &[u8]) -> Self {
        Self::to(&SectionHeader::parse(section, 0).expect("a section that was encoded"))
    }

    pub(super) const fn encode(self) -> [u8; 4] {
        self.0.to_le_bytes()
    }

    /// Reads and checks the tie, the first field of a section. Version 1 has none.
    pub(super) fn check(
        self,
        fields: &mut Fields<'_>,
        version: u16,
        expected: &'static str,
    ) -> Result<(), FormatError> {
        if version < TIED_VERSION {
            return Ok(());
        }
        let at = fields.offset();
        match fields.u32("section before")? {
            found if found == self.0 => Ok(()),
            found => Err(fields.invalid("section before", at, found.into(), expected)),
        }
    }
}

//! What ties a section to the one directly before it.

use super::error::FormatError;
use super::fields::Fields;
use super::section::SectionHeader;

/// Version of a section that belongs to the one before it and names that one.
pub(super) const TIED_VERSION: u16 = 2;

/// What ties a section to the one directly before it, to which it belongs: the checksum of that one's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tie(u32);

impl Tie {
    /// Ties to the section with this header.
    pub const fn to(header: &SectionHeader) -> Self {
        Self(header.body_crc)
    }

    /// Ties to a section that this build has encoded.
    ///
    /// # Panics
    /// If these are not the bytes of a section.
    pub fn to_encoded(section: &[u8]) -> Self {
        Self::to(&SectionHeader::parse(section, 0).expect("a section that was encoded"))
    }

    pub(super) const fn encode(self) -> [u8; 4] {
        self.0.to_le_bytes()
    }

    /// Reads the field of a section of this version, before all others; version 1 has none.
    ///
    /// # Errors
    /// The section belongs to another one.
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

//! Cursor over bytes with offsets for errors.

use alloc::vec::Vec;

use crate::ColumnError;

/// Cursor over the bytes of columns, with offsets for errors.
#[derive(Debug)]
pub struct ColumnCursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> ColumnCursor<'a> {
    /// Creates a cursor at the start of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the offset of the next byte.
    pub const fn offset(&self) -> usize {
        self.at
    }

    /// Returns the unread bytes.
    #[inline(always)]
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// Reads `length` bytes of a field. Fails with [`ColumnError::Short`] if fewer are left.
    #[inline(always)]
    pub fn take(&mut self, field: &'static str, length: usize) -> Result<&'a [u8], ColumnError> {
        let rest = self.rest();
        let found = rest.get(..length).ok_or(ColumnError::Short {
            field,
            offset: self.at,
            needed: length,
            available: rest.len(),
        })?;
        self.at += length;
        Ok(found)
    }

    pub(crate) fn byte(&mut self, field: &'static str) -> Result<u8, ColumnError> {
        self.take(field, 1).map(|byte| byte[0])
    }

    /// Reads a varint of at most 32 bits: seven bits per byte, the lowest first.
    pub(crate) fn varint(&mut self, field: &'static str) -> Result<u32, ColumnError> {
        let offset = self.at;
        let mut value = 0;
        for shift in (0..35).step_by(7) {
            let byte = self.byte(field)?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return u32::try_from(value).map_err(|_| Self::too_wide(field, offset, value));
            }
        }
        Err(Self::too_wide(field, offset, value))
    }

    const fn too_wide(field: &'static str, offset: usize, value: u64) -> ColumnError {
        ColumnError::Invalid { field, offset, value, expected: "a number of 32 bits in at most 5 bytes" }
    }
}

/// Appends a varint in the form of [`ColumnCursor::varint`].
pub(crate) fn push_varint(bytes: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

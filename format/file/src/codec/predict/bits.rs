//! Reader of a payload's bits.

use crate::codec::error::CodecError;

#[derive(Clone, Copy)]
pub(super) struct Bits<'a> {
    pub(super) payload: &'a [u8],
    pub(super) at: usize,
    /// Number of the current event, for errors.
    pub(super) event: u32,
}

impl Bits<'_> {
    pub(super) fn bit(&mut self) -> Result<bool, CodecError> {
        Ok(self.read(1)? != 0)
    }

    pub(super) fn read(&mut self, count: u32) -> Result<u32, CodecError> {
        let bits = self.window() & ((1 << count) - 1);
        self.skip(count)?;
        Ok(bits as u32)
    }

    /// Returns at least the next 57 bits, with zeros after the payload's end. No part of the code is longer.
    #[inline(always)]
    pub(super) fn window(&self) -> u64 {
        let (from, end) = (self.at / 8, self.payload.len());
        let window = match self.payload.get(from..from + 8).and_then(|bytes| bytes.first_chunk::<8>()) {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => match self.payload.last_chunk::<8>() {
                // The last eight bytes, without the bytes before `from`.
                Some(bytes) => {
                    u64::from_le_bytes(*bytes).checked_shr(8 * (from + 8 - end) as u32).unwrap_or(0)
                }
                None => self.short_window(),
            },
        };
        window >> (self.at % 8)
    }

    fn short_window(&self) -> u64 {
        let rest = self.payload.get(self.at / 8..).unwrap_or_default();
        rest.iter().rev().fold(0, |bits, byte| (bits << 8) | u64::from(*byte))
    }

    #[inline(always)]
    pub(super) fn skip(&mut self, count: u32) -> Result<(), CodecError> {
        self.at += count as usize;
        if self.at > 8 * self.payload.len() {
            return Err(CodecError::TruncatedCode { event: self.event, offset: self.payload.len() });
        }
        Ok(())
    }

    /// Returns true if only the zeros that fill the last byte follow. Every code is longer than such zeros.
    #[inline(always)]
    pub(super) fn is_at_end(&self) -> bool {
        if self.at + 8 <= 8 * self.payload.len() {
            return false;
        }
        match &self.payload[self.at.div_ceil(8)..] {
            [] if self.at.is_multiple_of(8) => true,
            [] => self.payload[self.at / 8] >> (self.at % 8) == 0,
            _ => false,
        }
    }

    #[cold]
    pub(super) fn bad(&self, bit: usize, field: &'static str) -> CodecError {
        CodecError::BadCode { event: self.event, offset: bit / 8, bit: (bit % 8) as u8, field }
    }
}

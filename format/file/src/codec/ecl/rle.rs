//! RLE: the last stage, over the counts and literals of LZa2.
//!
//! A group is one count byte, then 1 to 16 literals, each different from the one before it. The last literal
//! repeats 0 to 15 more times. The count byte holds `literals - 1` in its low and the repeats in its high
//! four bits. The encoder ends a group when its repeats end, at 15 repeats, or before a 17th literal.

use crate::memory::Memory;

/// Most literals of a group.
pub const MAX_LITERALS: u32 = 16;
/// Most repeats of a group's last literal.
pub const MAX_REPEATS: u32 = 15;
/// Bits of the count byte that hold `literals - 1`.
pub const LITERALS_MASK: u32 = 0x0f;
/// Bit position of the repeats in the count byte.
pub const REPEATS_SHIFT: u32 = 4;

/// The open group: literals (0 if none is open) in bits 0..8, repeats in 8..16, the last literal in 16..24.
const REPEAT: u32 = 1 << 8;
const LAST_SHIFT: u32 = 16;

/// Encoder state: two words, all zero at the start. A group's count byte is written after its literals, so no
/// buffer is needed. One [`push`](Self::push) writes at most two bytes and reads none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RleState {
    length: u32,
    group: u32,
}

impl RleState {
    /// Creates a state with no output and no open group.
    pub const fn new() -> Self {
        Self { length: 0, group: 0 }
    }

    pub(super) const fn from_words(words: [u32; 2]) -> Self {
        Self { length: words[0], group: words[1] }
    }

    pub(super) const fn to_words(self) -> [u32; 2] {
        [self.length, self.group]
    }

    /// Returns the number of output bytes, including the open group's count byte.
    #[inline(always)]
    pub const fn length(&self) -> u32 {
        self.length
    }

    /// Appends one byte. `byte` is at most 255.
    #[inline(always)]
    pub fn push<O: Memory>(&mut self, out: &mut O, byte: u32) {
        // To avoid branches, this function uses select instructions and conditional writes: see
        // `Memory::set8_if`.
        let open = self.group & 0xffff;
        let repeats = (open != 0) & (byte == self.group >> LAST_SHIFT);
        // One comparison for two conditions: the group has no repeats, and fewer than 16 literals.
        let joins = (open != 0) & (open < MAX_LITERALS) & !repeats;
        let opens = !repeats & !joins;
        let group = if repeats { self.group + REPEAT } else { self.group };
        let closes = (repeats & (open >> 8 == MAX_REPEATS - 1)) | (opens & (open != 0));
        self.close_if(closes, out, group);
        // A new group begins with its count byte, which `close_if` writes.
        let at = self.length + u32::from(opens);
        out.set8_if(!repeats, at, byte as u8);
        self.length = if repeats { self.length } else { at + 1 };
        let literals = if joins { open + 1 } else { 1 };
        let group = if closes { 0 } else { group };
        self.group = if repeats { group } else { (byte << LAST_SHIFT) | literals };
    }

    /// Ends the open group, if any. Returns the length of the output in bytes.
    #[inline(always)]
    pub fn finish<O: Memory>(&mut self, out: &mut O) -> u32 {
        self.close_if(self.group != 0, out, self.group);
        self.group = 0;
        self.length
    }

    /// If `condition` holds, writes the count byte of `group`, just before the group's literals.
    #[inline(always)]
    fn close_if<O: Memory>(&self, condition: bool, out: &mut O, group: u32) {
        let literals = group & 0xff;
        let repeats = (group >> 8) & 0xff;
        let count = (repeats << REPEATS_SHIFT) | literals.wrapping_sub(1);
        out.set8_if(condition, self.length.wrapping_sub(literals + 1), count as u8);
    }
}

/// Byte-wise decoder of groups. Accepts any grouping, not only the encoder's choice.
#[cfg(feature = "std")]
#[derive(Clone, Debug)]
pub struct RleReader<'a> {
    payload: &'a [u8],
    at: usize,
    literals_end: usize,
    repeats: u8,
}

#[cfg(feature = "std")]
impl<'a> RleReader<'a> {
    /// Creates a reader at the start of `payload`.
    pub const fn new(payload: &'a [u8]) -> Self {
        Self { payload, at: 0, literals_end: 0, repeats: 0 }
    }

    /// Returns true if no byte is left.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.at == self.payload.len() && self.repeats == 0
    }

    /// Returns the offset of the next byte: its count byte if it opens a group, the literal if it repeats.
    #[inline(always)]
    pub const fn offset(&self) -> usize {
        if self.at == self.literals_end && self.repeats != 0 { self.at - 1 } else { self.at }
    }

    /// Returns the next byte. Fails if the payload ends inside a group, or if no byte is left.
    #[inline(always)]
    #[expect(clippy::should_implement_trait, reason = "an iterator would need an Option around each Result")]
    pub fn next(&mut self) -> Result<u8, crate::codec::CodecError> {
        if self.at == self.literals_end {
            if self.repeats != 0 {
                self.repeats -= 1;
                return Ok(self.payload[self.at - 1]);
            }
            self.open_group()?;
        }
        let byte = self.payload[self.at];
        self.at += 1;
        Ok(byte)
    }

    #[inline(always)]
    fn open_group(&mut self) -> Result<(), crate::codec::CodecError> {
        let after = &self.payload[self.at..];
        let (count, literals) = after.split_first().map_or((0, after), |(count, rest)| (*count, rest));
        let wanted = (count & LITERALS_MASK as u8) + 1;
        if literals.len() < usize::from(wanted) {
            return Err(crate::codec::CodecError::TruncatedGroup {
                offset: self.at,
                literals: wanted,
                left: literals.len() as u8,
            });
        }
        self.at += 1;
        self.literals_end = self.at + usize::from(wanted);
        self.repeats = count >> REPEATS_SHIFT;
        Ok(())
    }
}

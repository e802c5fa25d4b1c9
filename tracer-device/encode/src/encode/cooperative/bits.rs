//! Concatenates the codes of a group's lanes and copies them to the chunk.

use warptrace_format::Memory;
use warptrace_format::codec::predict::code::Code;
use warptrace_format::codec::predict::encoder::{MAX_AGAIN_BITS, MAX_PUSH_BITS};

use super::{GROUP_LANES, Member};
use crate::memory::{GlobalMemory, SharedMemory};
use crate::warp;

/// Words that the codes of a group can touch at once, after bits of an incomplete word.
const WORDS: u32 = (31 + GROUP_LANES * (MAX_PUSH_BITS + MAX_AGAIN_BITS)).div_ceil(32);
pub(super) const BUFFER_BYTES: u32 = WORDS.div_ceil(4) * 16;

/// Bits that a group writes, starting at a word of the payload. Zero, except in an incomplete word.
#[derive(Clone, Copy)]
pub(super) struct Buffer {
    pub(super) memory: SharedMemory,
    pub(super) at: u32,
    pub(super) member: Member,
}

impl Buffer {
    #[inline(always)]
    pub(super) fn put(self, position: u32, code: Code) {
        let (word, shift) = (self.at + position / 32 * 4, position % 32);
        let bits = code.bits << shift;
        // The bits that the shift has lost. Shifting this half by 32 gives 0.
        let lost = (code.bits >> 32) >> (32 - shift);
        self.or(word, bits as u32);
        self.or(word + 4, (bits >> 32) as u32);
        self.or(word + 8, lost as u32);
    }

    /// Sets bits of a word. Other lanes may set bits of the same word at the same time.
    #[inline(always)]
    fn or(self, at: u32, bits: u32) {
        #[cfg(target_arch = "nvptx64")]
        // SAFETY: the word is in the buffer.
        unsafe {
            core::arch::asm!("{{ .reg .pred p; setp.ne.u32 p, {0}, 0; @p red.shared.or.b32 [{1}], {0}; }}",
                in(reg32) bits, in(reg32) self.memory.address + at, options(nostack, preserves_flags));
        }
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let mut memory = self.memory;
            memory.set32(at, memory.get32(at) | bits);
        }
    }

    /// Moves the complete words to the payload, which has `before` bits; `more` are new. All lanes call it.
    #[inline(always)]
    pub(super) fn flush(self, payload: u64, before: u32, more: u32) {
        let (mut memory, mut payload) = (self.memory, GlobalMemory::new(payload));
        let first = before / 32 * 4;
        let filled = before % 32 + more;
        let words = filled / 32;
        warp::sync_warp();
        let rest = memory.get32(self.at + 4 * words);
        let mut word = self.member.index;
        while warp::ballot(word <= words) != 0 {
            let at = self.at + 4 * word.min(WORDS - 1);
            let bits = memory.get32(at);
            warp::sync_warp();
            payload.set32_if(word < words, first + 4 * word, bits);
            memory.set32(at, if word == 0 { rest } else { 0 });
            word += GROUP_LANES;
        }
        warp::sync_warp();
    }
}

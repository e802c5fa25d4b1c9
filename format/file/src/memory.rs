//! Byte-addressed memory for the codecs.
//!
//! A warp's tables are in shared memory, in global memory or, on the host, in a slice. On the device each
//! implementation of [`Memory`] compiles to the instructions of its address space.

/// A region of memory addressed by byte offset. The codecs access only offsets inside the size that their
/// specification requires. 32-bit accesses are 4-byte aligned relative to the region's start.
pub trait Memory {
    /// Reads the byte at `at`.
    fn get8(&self, at: u32) -> u8;
    /// Writes the byte at `at`.
    fn set8(&mut self, at: u32, value: u8);
    /// Reads the little-endian word at `at`, which is a multiple of 4.
    fn get32(&self, at: u32) -> u32;
    /// Writes the little-endian word at `at`, which is a multiple of 4.
    fn set32(&mut self, at: u32, value: u32);

    /// Writes the byte at `at` if `condition` holds, without a branch where possible.
    #[inline(always)]
    fn set8_if(&mut self, condition: bool, at: u32, value: u8) {
        if condition {
            self.set8(at, value);
        }
    }
    /// Writes the word at `at` (a multiple of 4) if `condition` holds, without a branch where possible.
    #[inline(always)]
    fn set32_if(&mut self, condition: bool, at: u32, value: u32) {
        if condition {
            self.set32(at, value);
        }
    }

    /// Reads two words at `at`, which is a multiple of 8, in one access if the hardware supports it.
    #[inline(always)]
    fn get64(&self, at: u32) -> [u32; 2] {
        [self.get32(at), self.get32(at + 4)]
    }
    /// Writes two words at `at`, which is a multiple of 8, in one access if the hardware supports it.
    #[inline(always)]
    fn set64(&mut self, at: u32, value: [u32; 2]) {
        self.set32(at, value[0]);
        self.set32(at + 4, value[1]);
    }
    /// Reads four words at `at`, which is a multiple of 16, in one access if the hardware supports it.
    #[inline(always)]
    fn get128(&self, at: u32) -> [u32; 4] {
        [self.get32(at), self.get32(at + 4), self.get32(at + 8), self.get32(at + 12)]
    }
    /// Writes four words at `at`, which is a multiple of 16, in one access if the hardware supports it.
    #[inline(always)]
    fn set128(&mut self, at: u32, value: [u32; 4]) {
        self.set32(at, value[0]);
        self.set32(at + 4, value[1]);
        self.set32(at + 8, value[2]);
        self.set32(at + 12, value[3]);
    }
}

/// Memory in a slice, for tests, decoders and the host. Accesses outside the slice panic.
#[derive(Debug)]
pub struct SliceMemory<'a>(pub &'a mut [u8]);

impl Memory for SliceMemory<'_> {
    #[inline]
    fn get8(&self, at: u32) -> u8 {
        self.0[at as usize]
    }
    #[inline]
    fn set8(&mut self, at: u32, value: u8) {
        self.0[at as usize] = value;
    }
    #[inline]
    fn get32(&self, at: u32) -> u32 {
        let at = at as usize;
        u32::from_le_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }
    #[inline]
    fn set32(&mut self, at: u32, value: u32) {
        let at = at as usize;
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
}

//! Fatbins: containers that nvcc adds to a program, with images for several architectures.
//!
//! ```text
//! wrapper    u32 magic 0x466243b1   u32 version   pointer to the container   pointer
//! container  u32 magic 0xba55ed50   u16 version   u16 header bytes   u64 bytes of all entries
//! entry      offset  size  field
//!                 0     2  kind: 1 PTX, 2 machine code (ELF)
//!                 2     2  version
//!                 4     4  bytes of this header
//!                 8     8  bytes of the payload, including padding
//!                16     4  bytes of the compressed payload, or 0
//!                28     4  architecture: 90 for sm_90
//!                40     8  flags: 0x2000 LZ4, 0x8000 zstd, 0x100000 for one architecture only (sm_90a)
//!                56     8  bytes of the uncompressed payload
//! ```
//! All numbers are little-endian. NVIDIA does not document the container: this is the layout that nvcc of
//! CUDA 11 to 13 writes and that public readers agree on.

use std::ffi::c_void;
use std::io::Read;

/// Magic number of the wrapper. A program passes the wrapper's address.
pub(crate) const WRAPPER_MAGIC: u32 = 0x4662_43b1;
pub(crate) const CONTAINER_MAGIC: u32 = 0xba55_ed50;
const WRAPPER_POINTER: usize = 8;
const CONTAINER_HEADER_BYTES: usize = 16;
/// Least bytes of an entry's header: all fields that are read.
const ENTRY_HEADER_BYTES: usize = 64;
/// Limit on the bytes of one image. The PTX of large libraries has some megabytes.
const MAX_TEXT_BYTES: u64 = 1 << 28;
/// Upper bound on the compression ratio of LZ4.
const MAX_LZ4_RATIO: u64 = 256;

const KIND_PTX: u16 = 1;
const KIND_ELF: u16 = 2;
const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;
const FLAG_SPECIFIC: u64 = 0x10_0000;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum FatbinError {
    #[error("it begins with {found:#010x}, not with the magic number of a fatbin")]
    Magic {
        /// The first four bytes.
        found: u32,
    },
    #[error("entry {entry} at byte {offset} passes the fatbin's end")]
    Truncated {
        /// Number of the entry, from 0.
        entry: usize,
        offset: usize,
    },
    #[error("the compressed PTX of entry {entry} cannot be read: {problem}")]
    Compressed {
        entry: usize,
        /// Description of the problem.
        problem: String,
    },
    #[error("the PTX of entry {entry} has {bytes} bytes, more than the {MAX_TEXT_BYTES} that are read")]
    Long {
        entry: usize,
        /// Uncompressed size in bytes.
        bytes: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ptx,
    Elf,
    /// Anything else, such as code for link-time optimisation.
    Other(u16),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    number: usize,
    pub(crate) kind: Kind,
    /// 90 for `sm_90`.
    pub(crate) architecture: u32,
    flags: u64,
    payload: &'a [u8],
    /// Uncompressed size in bytes.
    plain_bytes: u64,
}

/// # Safety
/// `image` is the address of a wrapper or a container. All bytes that the headers describe are readable and
/// do not change during `'a`.
pub(crate) unsafe fn container_at<'a>(image: *const c_void) -> Result<&'a [u8], FatbinError> {
    let mut container = image.cast::<u8>();
    // SAFETY: both begin with a magic number of 4 bytes. A wrapper has the container's address at byte 8.
    let magic = unsafe {
        if container.cast::<u32>().read_unaligned() == WRAPPER_MAGIC {
            container = container.add(WRAPPER_POINTER).cast::<*const u8>().read_unaligned();
        }
        if container.is_null() { 0 } else { container.cast::<u32>().read_unaligned() }
    };
    if magic != CONTAINER_MAGIC {
        return Err(FatbinError::Magic { found: magic });
    }
    // SAFETY: a container has a header of 16 bytes, which gives the number of bytes after it.
    unsafe {
        let header = std::slice::from_raw_parts(container, CONTAINER_HEADER_BYTES);
        let bytes = usize::try_from(u64_at(header, 8)).unwrap_or(usize::MAX);
        let all = usize::from(u16_at(header, 6)).saturating_add(bytes).min(isize::MAX as usize);
        Ok(std::slice::from_raw_parts(container, all))
    }
}

/// Returns the entries of a container. Fails if the magic number is wrong or an entry passes the end.
pub(crate) fn entries(container: &[u8]) -> Result<Vec<Entry<'_>>, FatbinError> {
    let magic = container.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    if magic != CONTAINER_MAGIC || container.len() < CONTAINER_HEADER_BYTES {
        return Err(FatbinError::Magic { found: magic });
    }
    let end = usize::try_from(u64_at(container, 8)).unwrap_or(usize::MAX);
    let mut at = usize::from(u16_at(container, 6));
    let end = at.saturating_add(end).min(container.len());
    let mut entries = Vec::new();
    while at < end {
        let number = entries.len();
        let truncated = FatbinError::Truncated { entry: number, offset: at };
        let header = container.get(at..end).filter(|rest| rest.len() >= ENTRY_HEADER_BYTES);
        let Some(header) = header else { return Err(truncated) };
        let header_bytes = u32_at(header, 4) as usize;
        let padded = usize::try_from(u64_at(header, 8)).unwrap_or(usize::MAX);
        let next = at.saturating_add(header_bytes).saturating_add(padded);
        if header_bytes < ENTRY_HEADER_BYTES || next > end {
            return Err(truncated);
        }
        let mut payload = &container[at + header_bytes..next];
        let (flags, compressed) = (u64_at(header, 40), u32_at(header, 16) as usize);
        let is_compressed = flags & (FLAG_LZ4 | FLAG_ZSTD) != 0;
        if is_compressed && compressed != 0 {
            payload = payload.get(..compressed).ok_or(truncated)?;
        }
        entries.push(Entry {
            number,
            kind: match u16_at(header, 0) {
                KIND_PTX => Kind::Ptx,
                KIND_ELF => Kind::Elf,
                other => Kind::Other(other),
            },
            architecture: u32_at(header, 28),
            flags,
            payload,
            plain_bytes: if is_compressed { u64_at(header, 56) } else { payload.len() as u64 },
        });
        at = next;
    }
    Ok(entries)
}

impl Entry<'_> {
    /// Returns true if the entry is for one architecture only, such as `sm_90a`.
    pub(crate) const fn is_specific(&self) -> bool {
        self.flags & FLAG_SPECIFIC != 0
    }

    /// Returns the name of the architecture: `90` or `90a`.
    pub(crate) fn target(&self) -> String {
        format!("{}{}", self.architecture, if self.is_specific() { "a" } else { "" })
    }

    /// Returns a PTX entry's text, up to a zero byte. Fails if it is damaged, too long, or not UTF-8.
    pub(crate) fn text(&self) -> Result<String, FatbinError> {
        let mut plain = self.bytes()?;
        let end = plain.iter().position(|&byte| byte == 0).unwrap_or(plain.len());
        plain.truncate(end);
        let damaged = |error: std::string::FromUtf8Error| FatbinError::Compressed {
            entry: self.number,
            problem: error.to_string(),
        };
        String::from_utf8(plain).map_err(damaged)
    }

    /// Returns the uncompressed image of an entry. Fails if it is damaged or exceeds the size limit.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, FatbinError> {
        let Self { number: entry, plain_bytes: bytes, .. } = *self;
        let damaged = |problem: String| FatbinError::Compressed { entry, problem };
        if bytes > MAX_TEXT_BYTES {
            return Err(FatbinError::Long { entry, bytes });
        }
        if self.flags & FLAG_ZSTD != 0 {
            let mut plain = Vec::new();
            let decoder = zstd::stream::read::Decoder::with_buffer(self.payload);
            let mut reader = decoder.map_err(|error| damaged(error.to_string()))?.take(bytes);
            reader.read_to_end(&mut plain).map_err(|error| damaged(error.to_string()))?;
            Ok(plain)
        } else if self.flags & FLAG_LZ4 != 0 {
            if bytes > (self.payload.len() as u64).saturating_mul(MAX_LZ4_RATIO) {
                return Err(damaged(format!("{} bytes cannot hold {bytes}", self.payload.len())));
            }
            let mut plain = vec![0; bytes as usize];
            let written = lz4_flex::block::decompress_into(self.payload, &mut plain)
                .map_err(|error| damaged(error.to_string()))?;
            plain.truncate(written);
            Ok(plain)
        } else {
            Ok(self.payload.to_vec())
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
#[path = "fatbin/tests.rs"]
mod tests;

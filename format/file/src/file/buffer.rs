//! Memory that a program's kernels can access: the `BUFS` section.
//!
//! The body is a structure in the metadata's encoding: a byte (1 if all memory is known, otherwise 0), and a
//! list of [`BufferInfo`]. The section is optional and not in the index. Several sections add up; a later
//! entry replaces an earlier one with the same number, for example when a buffer's end is known.

use serde::{Deserialize, Serialize};

use super::encoded::decode_body;
use super::error::FormatError;
use super::limits::{MAX_BUFFER_NAME_BYTES, MAX_BUFFERS};
use super::metadata::bounded;
use super::section::{SectionKind, encode_section};

const SECTION: &str = "BUFS";

crate::named_enum! {
    /// Kind of memory.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[non_exhaustive]
    pub enum BufferKind {
        /// Device memory.
        Device = "device",
        /// Managed memory, which the driver moves between host and device.
        Managed = "managed",
        /// Host memory that the device can access.
        Host = "host",
        /// Device memory from a pool, in stream order.
        Pool = "pool",
        /// A variable of a module.
        Variable = "variable",
        /// Memory mapped to reserved addresses, or memory of another process.
        Mapped = "mapped",
    }
}

/// An address range that kernels can access during a range of launches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferInfo {
    /// Number of the buffer, from 0 in order of creation.
    pub number: u32,
    /// Address of the first byte.
    pub address: u64,
    /// Size in bytes, at least 1. The last byte's address is below 2^64.
    pub bytes: u64,
    /// Kind of memory.
    pub kind: BufferKind,
    /// Name in the program, at most [`MAX_BUFFER_NAME_BYTES`] bytes; or empty.
    pub name: String,
    /// First launch that can access the buffer.
    pub first: u32,
    /// First launch that can no longer access it, not below `first`; `None` if it remains to the end.
    pub end: Option<u32>,
}

/// One section's part of a file's buffers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffers {
    /// True if this section and those before it hold all memory that kernels access by global addresses.
    pub is_complete: bool,
    /// Buffers, in the order of their numbers.
    #[serde(deserialize_with = "bounded::<_, _, MAX_BUFFERS>")]
    pub buffers: Vec<BufferInfo>,
}

impl Buffers {
    /// Encodes the section, header and body. Fails for a section that [`decode`](Self::decode) rejects.
    pub fn encode_section(&self) -> Result<Vec<u8>, FormatError> {
        let body = postcard::to_allocvec(self).expect("texts and integers in a sequence of known length");
        Self::decode(&body, 0)?;
        Ok(encode_section(SectionKind::Buffers, &body))
    }

    /// Decodes the body of a section at file offset `at`. Rejects numbers that do not ascend, and a buffer
    /// without bytes, beyond the address space, or that ends before it begins.
    pub fn decode(body: &[u8], at: u64) -> Result<Self, FormatError> {
        let found: Self = decode_body((SECTION, "buffers"), body, at)?;
        let mut next = 0;
        for BufferInfo { number, address, bytes, name, first, end, .. } in &found.buffers {
            let problem = if *number < next || *number as usize >= MAX_BUFFERS {
                format!("has a number out of order, or not below {MAX_BUFFERS}")
            } else if *bytes == 0 || address.checked_add(bytes - 1).is_none() {
                format!("has {bytes} bytes from address {address:#x} on")
            } else if end.is_some_and(|end| end < *first) {
                format!("begins in launch {first}, and ends before")
            } else if name.len() > MAX_BUFFER_NAME_BYTES {
                format!("has a name of {} bytes, over the limit of {MAX_BUFFER_NAME_BYTES}", name.len())
            } else {
                next = number + 1;
                continue;
            };
            let message = format!("buffer {number} {problem}");
            return Err(FormatError::Contents { section: SECTION, offset: at, message });
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::SECTION_HEADER_BYTES;
    use super::*;

    fn buffer(number: u32) -> BufferInfo {
        let (address, bytes, kind, name) = (0x7000, 300, BufferKind::Variable, "table".to_owned());
        BufferInfo { number, address, bytes, kind, name, first: 2, end: Some(4) }
    }

    #[test]
    fn what_is_written_is_read_and_the_bytes_stay() {
        let other = BufferInfo { end: None, name: String::new(), kind: BufferKind::Device, ..buffer(200) };
        let buffers = Buffers { is_complete: true, buffers: vec![buffer(3), other] };
        let section = buffers.encode_section().unwrap();
        let body = &section[SECTION_HEADER_BYTES..];
        assert_eq!(&section[..8], b"BUFS\x01\x00\x01\x00");
        let first = [1, 2, 3, 0x80, 0xe0, 1, 0xac, 2, 4, 5, b't', b'a', b'b', b'l', b'e', 2, 1, 4];
        assert_eq!(body[..18], first);
        assert_eq!(body[18..], [0xc8, 1, 0x80, 0xe0, 1, 0xac, 2, 0, 0, 2, 0]);
        assert_eq!(Buffers::decode(body, 0).unwrap(), buffers);
        for length in 0..body.len() {
            assert!(Buffers::decode(&body[..length], 9).is_err(), "length {length}");
        }
        assert!(Buffers::decode(&[body, &[0]].concat(), 0).is_err(), "a byte follows");
    }

    #[test]
    fn what_cannot_be_is_refused_and_said() {
        let long = "x".repeat(MAX_BUFFER_NAME_BYTES + 1);
        let too_many = MAX_BUFFERS as u32;
        for (buffers, said) in [
            (vec![buffer(1), buffer(1)], "buffer 1 has a number out of order"),
            (vec![buffer(too_many)], "not below 262144"),
            (vec![BufferInfo { bytes: 0, ..buffer(0) }], "has 0 bytes"),
            (vec![BufferInfo { address: u64::MAX - 9, bytes: 11, ..buffer(0) }], "has 11 bytes from address"),
            (vec![BufferInfo { first: 5, ..buffer(0) }], "begins in launch 5, and ends before"),
            (vec![BufferInfo { name: long, ..buffer(0) }], "a name of 1025 bytes"),
        ] {
            let error = Buffers { is_complete: true, buffers }.encode_section().unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        let last = BufferInfo { address: u64::MAX - 9, bytes: 10, end: Some(2), ..buffer(0) };
        assert!(Buffers { is_complete: false, buffers: vec![last] }.encode_section().is_ok());
    }
}

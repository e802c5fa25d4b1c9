//! Memory that a program's kernels can reach: the `BUFS` section.
//!
//! The body is a structure in the metadata's encoding: whether all of it is known (a byte, 0 or 1), and a
//! list of [`BufferInfo`]. The section is optional, and no index lists it. Buffers of several sections add
//! up; of several with one number the last counts, so that a buffer is told of when it is there, and again
//! when its end is known.

use serde::{Deserialize, Serialize};

use super::encoded::decode_body;
use super::error::FormatError;
use super::limits::{MAX_BUFFER_NAME_BYTES, MAX_BUFFERS};
use super::metadata::bounded;
use super::section::{SectionKind, encode_section};

const SECTION: &str = "BUFS";

crate::named_enum! {
    /// What kind of memory a buffer is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[non_exhaustive]
    pub enum BufferKind {
        /// Of the device.
        Device = "device",
        /// That the driver moves between host and device.
        Managed = "managed",
        /// Of the host, which the device reaches.
        Host = "host",
        /// Of the device, from a pool, in the order of a stream.
        Pool = "pool",
        /// A variable of a module.
        Variable = "variable",
        /// Mapped to addresses that were reserved before, or of another process.
        Mapped = "mapped",
    }
}

/// A range of addresses that kernels could access, for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferInfo {
    /// Its number, from 0 on in the order in which buffers came to be.
    pub number: u32,
    /// The address of its first byte.
    pub address: u64,
    /// How many bytes, at least 1; the last one's address is below 2^64.
    pub bytes: u64,
    /// What kind of memory it is.
    pub kind: BufferKind,
    /// What the program calls it, at most [`MAX_BUFFER_NAME_BYTES`] bytes; or nothing.
    pub name: String,
    /// The first launch in which it was there.
    pub first: u32,
    /// The first launch in which it was there no more, not before `first`; `None`: it was to the end.
    pub end: Option<u32>,
}

/// A part of a file's buffers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffers {
    /// Whether all memory that kernels reach by global addresses is in this section or one before.
    pub is_complete: bool,
    /// Buffers, in the order of their numbers.
    #[serde(deserialize_with = "bounded::<_, _, MAX_BUFFERS>")]
    pub buffers: Vec<BufferInfo>,
}

impl Buffers {
    /// Makes the section, header and body.
    ///
    /// # Errors
    /// What a reader would refuse: see [`decode`](Self::decode).
    pub fn encode_section(&self) -> Result<Vec<u8>, FormatError> {
        let body = postcard::to_allocvec(self).expect("texts and integers in a sequence of known length");
        Self::decode(&body, 0)?;
        Ok(encode_section(SectionKind::Buffers, &body))
    }

    /// Reads the body of a section at file offset `at`.
    ///
    /// # Errors
    /// A body over [`MAX_METADATA_BYTES`](super::limits::MAX_METADATA_BYTES), bytes that are no such
    /// structure, bytes after it; more than [`MAX_BUFFERS`] buffers, or numbers of them that do not ascend or
    /// are too large; a buffer of no bytes, or beyond the last address; one that ends before it begins; a
    /// name that is too long.
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

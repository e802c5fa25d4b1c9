//! Preamble: the first 24 bytes of a file.
//!
//! ```text
//! offset  size  field
//!      0     8  magic     89 57 54 52 0d 0a 1a 0a
//!      8     2  version   of the file as a whole
//!     10     2  flags     zero; readers reject unknown bits
//!     12     8  reserved  zero
//!     20     4  checksum  CRC-32 of the 20 bytes before
//! ```

use super::error::FormatError;
use super::fields::{Fields, push_crc};

/// First eight bytes of every trace. As in PNG, they reveal transfers that clear the eighth bit or translate
/// line ends, and stop `type` on a DOS prompt.
pub const MAGIC: [u8; 8] = *b"\x89WTR\r\n\x1a\n";
/// File version that this build writes.
pub const FILE_VERSION: u16 = 1;
/// File versions that this build reads.
pub const READABLE_VERSIONS: &[u16] = &[1];
/// Size of the preamble, in bytes.
pub const PREAMBLE_BYTES: usize = 24;

const PART: &str = "preamble";

/// Encodes the preamble.
pub fn encode_preamble() -> [u8; PREAMBLE_BYTES] {
    let mut bytes = Vec::with_capacity(PREAMBLE_BYTES);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&FILE_VERSION.to_le_bytes());
    bytes.extend_from_slice(&[0; 10]);
    push_crc(&mut bytes, 0);
    bytes.try_into().expect("8 + 2 + 10 + 4 bytes")
}

/// Checks the start of a file. `bytes` may be longer. Rejects a wrong magic (with a hint at its cause), an
/// unsupported version, and nonzero flags or reserved bytes.
pub fn check_preamble(bytes: &[u8]) -> Result<(), FormatError> {
    let start = &bytes[..bytes.len().min(PREAMBLE_BYTES)];
    let magic = &start[..start.len().min(MAGIC.len())];
    // A file that ends inside a correct magic is cut short, not foreign.
    if magic.is_empty() || !MAGIC.starts_with(magic) {
        return Err(FormatError::NotATrace { found: magic.to_vec(), hint: hint(magic) });
    }
    let mut fields = Fields::new(PART, start, 0);
    fields.take::<8>("magic")?;
    let version = fields.u16("version")?;
    // A later version may change the rest of the preamble.
    if !READABLE_VERSIONS.contains(&version) {
        return Err(FormatError::Version {
            section: PART,
            offset: 8,
            found: version,
            readable: READABLE_VERSIONS,
        });
    }
    let flags = fields.u16("flags")?;
    if flags != 0 {
        return Err(FormatError::Flags { section: PART, offset: 10, found: flags });
    }
    fields.zero::<8>("reserved")?;
    fields.crc("preamble")
}

fn hint(found: &[u8]) -> &'static str {
    if found.is_empty() {
        return "the file is empty: the recording did not start";
    }
    if found.iter().all(|&byte| byte == 0) {
        return "the file holds zeros: its contents never reached the disk";
    }
    if found.starts_with(b"\x09WTR") {
        return "the file went through a transfer that cleared the eighth bit: copy it in binary mode";
    }
    if found.starts_with(b"\x89WTR") {
        return "line ends were translated: copy the file in binary mode";
    }
    "is this a file that warptrace wrote?"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preamble_bytes_are_frozen() {
        assert_eq!(
            encode_preamble(),
            [
                0x89, b'W', b'T', b'R', 0x0d, 0x0a, 0x1a, 0x0a, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xfd,
                0x0e, 0x7b, 0xf2
            ]
        );
        assert_eq!(check_preamble(&encode_preamble()), Ok(()));
    }

    #[test]
    fn text_mode_damage_is_named() {
        let good = encode_preamble();
        let unix = [&good[..4], b"\n\x1a\n", &good[8..]].concat();
        let error = check_preamble(&unix).unwrap_err().to_string();
        assert!(error.contains("line ends"), "{error}");
        let mut stripped = good;
        stripped[0] &= 0x7f;
        let error = check_preamble(&stripped).unwrap_err().to_string();
        assert!(error.contains("eighth bit"), "{error}");
        assert!(check_preamble(&[]).unwrap_err().to_string().contains("empty"));
        assert!(check_preamble(&[0; 64]).unwrap_err().to_string().contains("zeros"));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_refused() {
        let good = encode_preamble();
        for bit in 0..good.len() * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(check_preamble(&bad).is_err(), "bit {bit}");
        }
        for length in 0..good.len() {
            assert!(check_preamble(&good[..length]).is_err(), "length {length}");
        }
    }

    #[test]
    fn a_newer_version_is_named() {
        let mut bytes = encode_preamble();
        bytes[8] = 9;
        assert_eq!(
            check_preamble(&bytes),
            Err(FormatError::Version { section: "preamble", offset: 8, found: 9, readable: &[1] })
        );
    }
}

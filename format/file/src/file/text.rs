//! Source texts that are not in files: the `TEXT` section.
//!
//! ```text
//! offset  size  field
//!      0     4  name bytes   length of the name, at least 1, at most 4,096
//!      4     4  text bytes   length of the text, at most 64 MiB
//!      8     1  compression  0 none, 1 zstd
//!      9     7  zero
//!     16     …  name         UTF-8; as locations give it for their file
//!      …     …  text         UTF-8, compressed or not
//! ```
//!
//! For a program compiled elsewhere, locations refer to the PTX in its binary, which the section keeps.

use super::error::FormatError;
use super::fields::Fields;
use super::frame::{Compression, StoredAs, compress, decompress};
use super::limits::{MAX_SECTION_BYTES, MAX_TEXT_BYTES, MAX_TEXT_NAME_BYTES};
use super::section::{SectionKind, encode_section_of};

const SECTION: &str = "TEXT";
const FIXED_BYTES: usize = 16;

/// A source text, and the name under which locations refer to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText {
    /// Name of the text.
    pub name: String,
    /// Contents.
    pub text: String,
}

struct Header<'b> {
    name: &'b str,
    text_bytes: usize,
    stored_as: StoredAs,
    stored: &'b [u8],
    stored_at: u64,
}

impl SourceText {
    /// Encodes the section, header and body. Fails for an empty name, and for a name or text over its limit.
    pub fn encode_section(&self, compression: Compression) -> Result<Vec<u8>, FormatError> {
        let Self { name, text } = self;
        let large =
            |field, value: usize, limit: u64| FormatError::too_large(SECTION, field, 0, value as u64, limit);
        if name.is_empty() {
            return Err(no_name(0));
        }
        let length = |field, bytes: usize, limit: usize| match u32::try_from(bytes) {
            Ok(length) if bytes <= limit => Ok(length.to_le_bytes()),
            _ => Err(large(field, bytes, limit as u64)),
        };
        let name_bytes = length("name bytes", name.len(), MAX_TEXT_NAME_BYTES)?;
        let text_bytes = length("text bytes", text.len(), MAX_TEXT_BYTES)?;
        let mut packed = Vec::new();
        let (stored_as, stored) = compress(SECTION, text.as_bytes(), compression, &mut packed)?;
        let mut fixed = [0; FIXED_BYTES];
        fixed[..4].copy_from_slice(&name_bytes);
        fixed[4..8].copy_from_slice(&text_bytes);
        fixed[8] = stored_as.to_byte();
        let length = FIXED_BYTES + name.len() + stored.len();
        if length as u64 > MAX_SECTION_BYTES {
            return Err(large("length", length, MAX_SECTION_BYTES));
        }
        Ok(encode_section_of(SectionKind::Text, &[&fixed, name.as_bytes(), stored]))
    }

    /// Decodes the body of a section at file offset `at`. Rejects wrong or too large lengths, and contents
    /// that are not UTF-8 or do not decompress as announced.
    pub fn decode(body: &[u8], at: u64) -> Result<Self, FormatError> {
        let Header { name, text_bytes, stored_as, stored, stored_at } = header(body, at)?;
        let plain = decompress(SECTION, stored_as, stored, text_bytes, stored_at)?;
        if plain.len() != text_bytes {
            let (at, expected) = (at.saturating_add(4), format!("{}, the bytes of the text", plain.len()));
            return Err(FormatError::invalid(SECTION, "text bytes", at, text_bytes as u64, expected));
        }
        let text = String::from_utf8(plain).map_err(|_| no_utf8("text", stored_at))?;
        Ok(Self { name: name.to_owned(), text })
    }

    /// Decodes the name and the size of the text (at most [`MAX_TEXT_BYTES`]) without decompressing the text.
    pub fn decode_head(body: &[u8], at: u64) -> Result<(&str, usize), FormatError> {
        let Header { name, text_bytes, .. } = header(body, at)?;
        Ok((name, text_bytes))
    }
}

fn header(body: &[u8], at: u64) -> Result<Header<'_>, FormatError> {
    let mut fields = Fields::new(SECTION, &body[..body.len().min(FIXED_BYTES)], at);
    let name_bytes = fields.u32("name bytes")?;
    let text_bytes = fields.u32("text bytes")?;
    let stored_as = fields.stored_as::<7>()?;
    fields.limit("name bytes", 0, name_bytes.into(), MAX_TEXT_NAME_BYTES as u64)?;
    fields.limit("text bytes", 4, text_bytes.into(), MAX_TEXT_BYTES as u64)?;
    if name_bytes == 0 {
        return Err(no_name(at));
    }
    let rest = &body[FIXED_BYTES..];
    let name_at = at.saturating_add(FIXED_BYTES as u64);
    let Some((name, stored)) = rest.split_at_checked(name_bytes as usize) else {
        return Err(FormatError::Short {
            section: SECTION,
            field: "name",
            offset: name_at,
            needed: name_bytes.into(),
            available: rest.len() as u64,
        });
    };
    Ok(Header {
        name: std::str::from_utf8(name).map_err(|_| no_utf8("name", name_at))?,
        text_bytes: text_bytes as usize,
        stored_as,
        stored,
        stored_at: name_at.saturating_add(name_bytes.into()),
    })
}

fn no_name(at: u64) -> FormatError {
    FormatError::invalid(SECTION, "name bytes", at, 0, "at least 1")
}

fn no_utf8(what: &str, offset: u64) -> FormatError {
    FormatError::Contents { section: SECTION, offset, message: format!("the {what} is not UTF-8") }
}

#[cfg(test)]
mod tests {
    use super::super::SECTION_HEADER_BYTES;
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let text = SourceText { name: "k.ptx".into(), text: "ret;\n".repeat(100) };
        for compression in [Compression::None, Compression::default()] {
            let section = text.encode_section(compression).unwrap();
            let body = &section[SECTION_HEADER_BYTES..];
            assert_eq!(SourceText::decode(body, 0), Ok(text.clone()));
            assert_eq!(SourceText::decode_head(body, 0), Ok(("k.ptx", text.text.len())));
            for length in 0..body.len() {
                assert!(SourceText::decode(&body[..length], 9).is_err(), "length {length}");
            }
            for bit in 0..8 * FIXED_BYTES {
                let mut bad = body.to_vec();
                bad[bit / 8] ^= 1 << (bit % 8);
                assert!(SourceText::decode(&bad, 0).is_err(), "bit {bit}");
            }
        }
    }

    #[test]
    fn what_has_no_name_or_is_too_long_is_refused() {
        let text = |name: String, text: String| SourceText { name, text };
        for (bad, field) in [
            (text(String::new(), String::new()), "name bytes"),
            (text("n".repeat(MAX_TEXT_NAME_BYTES + 1), String::new()), "name bytes"),
            (text("n".into(), " ".repeat(MAX_TEXT_BYTES + 1)), "text bytes"),
        ] {
            let error = bad.encode_section(Compression::None).unwrap_err();
            assert!(error.to_string().contains(field), "{error}");
        }
        let largest = text("n".into(), " ".repeat(MAX_TEXT_BYTES));
        assert!(largest.encode_section(Compression::None).is_err(), "a section has at most 32 MiB");
        assert!(largest.encode_section(Compression::default()).is_ok());
    }
}

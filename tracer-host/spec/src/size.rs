//! Memory sizes as text.

use std::fmt;
use std::str::FromStr;

/// Bytes of memory, written as `64MiB`, `1GiB`, `512M`, or a plain number of bytes. `K`, `M`, `G` and `T` are
/// `KiB`, `MiB`, `GiB` and `TiB`: powers of 1,024.
///
/// ```
/// use warptrace_spec::MemorySize;
/// assert_eq!("64MiB".parse(), Ok(MemorySize(64 << 20)));
/// assert_eq!("512m".parse(), Ok(MemorySize(512 << 20)));
/// assert_eq!(MemorySize(1 << 30).to_string(), "1 GiB");
/// assert!("1GB".parse::<MemorySize>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemorySize(pub u64);

/// Error of parsing a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemorySizeError {
    /// The text is not a number with a unit.
    #[error("a size is a number with a unit of 1,024, as in 64MiB, 1GiB or 512M, or a number of bytes")]
    Form,
    /// The size does not fit into 64 bits.
    #[error("a size has less than 2^64 bytes")]
    TooLarge,
}

const UNITS: [(char, u32); 4] = [('k', 10), ('m', 20), ('g', 30), ('t', 40)];

impl FromStr for MemorySize {
    type Err = MemorySizeError;

    fn from_str(text: &str) -> Result<Self, MemorySizeError> {
        let text = text.trim();
        let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        if number.is_empty() {
            return Err(MemorySizeError::Form);
        }
        let number: u64 = number.parse().map_err(|_| MemorySizeError::TooLarge)?;
        let unit = unit.trim_start().to_ascii_lowercase();
        let shift = match unit.as_str() {
            "" | "b" => 0,
            _ => {
                let known = UNITS.iter().find(|(letter, _)| unit.starts_with(*letter));
                let &(_, shift) = known.ok_or(MemorySizeError::Form)?;
                if !["", "ib"].contains(&&unit[1..]) {
                    return Err(MemorySizeError::Form);
                }
                shift
            }
        };
        number.checked_mul(1 << shift).map(Self).ok_or(MemorySizeError::TooLarge)
    }
}

impl fmt::Display for MemorySize {
    /// Formats the size in the largest unit that divides it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(bytes) = *self;
        let whole = |(_, shift): &&(char, u32)| bytes != 0 && bytes.is_multiple_of(1 << shift);
        match UNITS.iter().rev().find(whole) {
            Some((letter, shift)) => write!(f, "{} {}iB", bytes >> shift, letter.to_ascii_uppercase()),
            None => write!(f, "{bytes} bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("17B", 17),
            ("64MiB", 64 << 20),
            (" 64 mib ", 64 << 20),
            ("1GiB", 1 << 30),
            ("512M", 512 << 20),
            ("3k", 3 << 10),
            ("2T", 2 << 40),
            ("18446744073709551615", u64::MAX),
            ("16777215TiB", 16_777_215 << 40),
        ] {
            assert_eq!(text.parse(), Ok(MemorySize(bytes)), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_says_what_is() {
        // MB and GB are ambiguous: 1,000 or 1,024.
        for text in ["", "M", "MiB", "-1", "1.5GiB", "64MB", "1 GiB x", "0x10", "1GG", "1Gi", "1é", "é"] {
            assert_eq!(text.parse::<MemorySize>(), Err(MemorySizeError::Form), "{text}");
        }
        for text in ["18446744073709551616", "16777216TiB", "99999999999999999999M"] {
            assert_eq!(text.parse::<MemorySize>(), Err(MemorySizeError::TooLarge), "{text}");
        }
        assert!(MemorySizeError::Form.to_string().contains("64MiB"));
    }

    #[test]
    fn a_size_reads_back_as_it_is_written() {
        for bytes in [0, 1, 1000, 1024, 1536, 3 << 20, 1 << 30, (1 << 30) + 1, 5 << 40, u64::MAX] {
            let text = MemorySize(bytes).to_string();
            assert_eq!(text.trim_end_matches("ytes").parse(), Ok(MemorySize(bytes)), "{text}");
        }
        assert_eq!(MemorySize(1536).to_string(), "1536 bytes");
        assert_eq!(MemorySize(1536 << 20).to_string(), "1536 MiB");
    }
}

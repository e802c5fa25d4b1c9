//! Markers of values.

use super::{DataMarker, MarkerError, VALUE, parse_number, words_of};
use crate::data::ValueType;

/// First word of a marker of a value named in C++, after `//` or in a `.pragma`.
const NAMED_VALUE: &str = "WARPTRACE_VALUE ";

/// Marker of a register that holds a value that the source names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueMarker<'a> {
    /// The value's id or name in the source.
    pub of: ValueName<'a>,
    /// The value's type.
    pub ty: ValueType,
    /// The register.
    pub register: &'a str,
}

/// Identification of a value in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueName<'a> {
    /// Id in the table of a kernel module, at least 1.
    Id(u16),
    /// Name, not empty.
    Name(&'a str),
}

impl<'a> ValueMarker<'a> {
    /// Parses a comment or the text of a `.pragma`. Returns `None` for no marker of a value.
    pub fn parse(comment: &'a str) -> Option<Result<Self, MarkerError<'a>>> {
        if let Some((kind, mut words)) = words_of(comment) {
            return (kind == VALUE).then(|| {
                let id = parse_number(words.next(), "the value", u16::MAX)?;
                Self::parse_words(ValueName::Id(id), &mut words)
            });
        }
        let said = comment.strip_prefix("//").unwrap_or(comment);
        let rest = said.trim().strip_prefix(NAMED_VALUE)?.trim_start();
        let mut parts = rest.splitn(3, |at: char| at.is_ascii_whitespace());
        let mut words = [parts.next(), parts.next()].into_iter().flatten();
        let name = parts.next().map_or("", str::trim);
        Some(match name {
            "" => Err(MarkerError::Missing("the name of a value")),
            name => Self::parse_words(ValueName::Name(name), &mut words),
        })
    }

    fn parse_words(
        of: ValueName<'a>,
        words: &mut dyn Iterator<Item = &'a str>,
    ) -> Result<Self, MarkerError<'a>> {
        let word = words.next().ok_or(MarkerError::Missing("the type of a value"))?;
        let ty = ValueType::from_name(word).ok_or(MarkerError::Type(word))?;
        let register = words.next().ok_or(MarkerError::Missing("the register of a value"))?;
        if !DataMarker::is_written(register) {
            return Err(MarkerError::Operand(register));
        }
        match words.next() {
            None => Ok(Self { of, ty, register }),
            Some(word) => Err(MarkerError::Follows(word)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Marker;
    use super::*;

    #[test]
    fn markers_of_values_are_read() {
        let marker = |of, ty, register| Some(Ok(ValueMarker { of, ty, register }));
        let text = crate::marker!(value f32).replacen("{}", "12", 1).replacen("{}", "%f5", 1);
        assert_eq!(ValueMarker::parse(&text), marker(ValueName::Id(12), ValueType::F32, "%f5"));
        assert_eq!((Marker::parse(&text), DataMarker::parse(&text)), (None, None));
        let named = "//  WARPTRACE_VALUE i64 %rd5 rows left ";
        assert_eq!(ValueMarker::parse(named), marker(ValueName::Name("rows left"), ValueType::I64, "%rd5"));
        assert_eq!(ValueMarker::parse(&named[2..]), ValueMarker::parse(named));
        assert_eq!((Marker::parse(named), ValueMarker::parse("// WARPTRACE rows left")), (None, None));
        assert_eq!(ValueMarker::parse("// warptrace.loc 3"), None);
        for (text, says) in [
            ("// warptrace.value", "the value is missing"),
            ("// warptrace.value 0 f32 %f1", "`0` is not the value, a number from 1 to 65,535"),
            ("// warptrace.value 3", "the type of a value is missing"),
            ("// warptrace.value 3 f16 %h1", "`f16` is none of the types u32"),
            ("// warptrace.value 3 u32", "the register of a value is missing"),
            ("// warptrace.value 3 u32 [%r1]", "`[%r1]` is no address"),
            ("// warptrace.value 3 u32 %r1 %r2", "`%r2` follows"),
            ("// WARPTRACE_VALUE u32 %r1", "the name of a value is missing"),
            ("// WARPTRACE_VALUE u33 %r1 name", "`u33` is none of the types"),
        ] {
            let error = ValueMarker::parse(text).expect("a marker").expect_err("a bad one").to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}

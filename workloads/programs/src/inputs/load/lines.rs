//! Lines and fields of text files, with line numbers for errors.

use super::error::LoadProblem;
use std::str::FromStr;

/// Maximum number of file bytes quoted in an error.
const SHOWN: usize = 40;

#[derive(Clone)]
pub(super) struct Lines<'a> {
    rest: &'a [u8],
    number: u64,
}

impl<'a> Lines<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, number: 0 }
    }

    /// Returns the next line, or an error that states the expected content.
    pub(super) fn expect(&mut self, expected: &str) -> Result<Line<'a>, LoadProblem> {
        let line = self.number + 1;
        self.next().ok_or_else(|| LoadProblem::Syntax {
            line,
            found: "the end of the file".to_owned(),
            expected: expected.to_owned(),
        })
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        while !self.rest.is_empty() {
            let end = self.rest.iter().position(|byte| *byte == b'\n');
            let (bytes, rest) = match end {
                Some(end) => (&self.rest[..end], &self.rest[end + 1..]),
                None => (self.rest, &[][..]),
            };
            self.rest = rest;
            self.number += 1;
            let bytes = bytes.trim_ascii();
            if !bytes.is_empty() {
                return Some(Line { number: self.number, bytes });
            }
        }
        None
    }
}

/// A line without surrounding white space; never empty.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) number: u64,
    pub(super) bytes: &'a [u8],
}

impl<'a> Line<'a> {
    pub(super) fn fields(&self) -> Fields<'a> {
        Fields { rest: self.bytes, line: self.number }
    }

    pub(super) fn starts_with(&self, byte: u8) -> bool {
        self.bytes[0] == byte
    }

    pub(super) fn is_led_by(&self, field: &[u8]) -> bool {
        self.fields().next() == Some(field)
    }

    pub(super) fn unexpected(&self, expected: impl Into<String>) -> LoadProblem {
        LoadProblem::Syntax { line: self.number, found: show(self.bytes), expected: expected.into() }
    }
}

/// Iterator over the fields of a line, separated by white space.
#[derive(Clone)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    pub(super) line: u64,
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest.trim_ascii_start();
        if rest.is_empty() {
            return None;
        }
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        let (field, rest) = rest.split_at(end);
        self.rest = rest;
        Some(field)
    }
}

impl Fields<'_> {
    pub(super) fn number<T: FromStr>(&mut self, expected: &str) -> Result<T, LoadProblem> {
        let line = self.line;
        let field = self.next();
        field.and_then(parse).ok_or_else(|| problem(line, field, expected))
    }

    pub(super) fn index(&mut self, what: &str, low: u32, high: u32) -> Result<u32, LoadProblem> {
        let line = self.line;
        let field = self.next();
        field
            .and_then(parse)
            .filter(|value| (low..=high).contains(value))
            .ok_or_else(|| problem(line, field, &format!("{what} from {low} to {high}")))
    }

    pub(super) fn finite(&mut self, what: &str) -> Result<f64, LoadProblem> {
        let line = self.line;
        let field = self.next();
        field
            .and_then(parse)
            .filter(|value: &f64| value.is_finite())
            .ok_or_else(|| problem(line, field, &format!("{what}, a finite number")))
    }

    /// Parses the next field as a weight: an integer, or a real number with an integer value.
    pub(super) fn weight(&mut self) -> Result<u32, LoadProblem> {
        const EXPECTED: &str =
            "a weight, an integer from 0 to 4294967295 (or load without weights, ignoring this column)";
        let line = self.line;
        let field = self.next();
        field
            .and_then(|bytes| parse(bytes).or_else(|| whole(parse(bytes)?)))
            .ok_or_else(|| problem(line, field, EXPECTED))
    }

    pub(super) fn end(&mut self) -> Result<(), LoadProblem> {
        let line = self.line;
        match self.next() {
            None => Ok(()),
            field => Err(problem(line, field, "the end of the line")),
        }
    }
}

fn parse<T: FromStr>(field: &[u8]) -> Option<T> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// Converts a real number to `u32` if the conversion is exact.
fn whole(value: f64) -> Option<u32> {
    let converted = value as u32;
    (f64::from(converted) == value).then_some(converted)
}

fn problem(line: u64, field: Option<&[u8]>, expected: &str) -> LoadProblem {
    let found = field.map_or_else(|| "the end of the line".to_owned(), show);
    LoadProblem::Syntax { line, found, expected: expected.to_owned() }
}

/// Quotes bytes of a file for a message: escaped and cut to [`SHOWN`] bytes.
pub(super) fn show(bytes: &[u8]) -> String {
    let cut = bytes.len() > SHOWN;
    let text = bytes[..bytes.len().min(SHOWN)].escape_ascii();
    format!("\"{text}{}\"", if cut { "..." } else { "" })
}

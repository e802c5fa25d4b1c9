//! Data sites of a kernel, from its data markers.

use warptrace_abi::data::MAX_KERNEL_SITES;
use warptrace_abi::marker::DataMarker;

use super::{LogKind, Recording, SpliceError};
use crate::registers::{Registers, bits};
use crate::{Body, Function, Module};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DataPlace {
    pub(super) statement: usize,
    pub(super) site: u16,
    pub(super) source: DataSource,
    /// The predicate of the lanes that record, and whether it is negated.
    pub(super) guard: Option<(String, bool)>,
}

/// Source of the 64 bits to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DataSource {
    /// An address: a register of 32 or 64 bits plus an offset.
    Address { register: String, bits: u32, offset: i64 },
    /// The address of a variable plus an offset, or a number.
    Constant(String),
    /// The content of a register with this number of bits, 1 for a predicate.
    Value { register: String, bits: u32 },
}

/// The range of a kernel's sites. Each site in the range has a place in each lane's local memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sites {
    pub(super) first: u16,
    pub(super) count: u16,
}

impl Sites {
    pub(super) const fn slot(self, site: u16) -> u32 {
        (site - self.first) as u32
    }
}

pub(super) fn check(recording: Recording) -> Result<(), SpliceError> {
    let with = match recording {
        _ if !recording.has_data() => return Ok(()),
        Recording { dual: true, .. } => "the dual recording",
        Recording { after: Some(_), .. } => "the visit from which on lanes are recorded",
        Recording { logs: LogKind::Ring, .. } => "the policy `ring`",
        Recording { logs: LogKind::Streamed, .. } => "the policy `stream`",
        _ => return Ok(()),
    };
    Err(SpliceError::Data { with })
}

/// Finds the data markers of a function that record, in text order, and the range of their sites. Returns a
/// [`SpliceError`] if a marker cannot be read or names no register, or if there are too many sites.
pub(super) fn find(
    module: &Module<'_>,
    function: &Function<'_>,
    body: &Body<'_>,
) -> Result<(Vec<DataPlace>, Sites), SpliceError> {
    let mut places: Vec<DataPlace> = Vec::new();
    let mut registers = None;
    for (index, statement) in body.statements.iter().enumerate() {
        let Some(marker) = statement.comment().and_then(DataMarker::parse) else { continue };
        let failed = |problem| SpliceError::marker(module, statement.span.start, problem);
        let marker = marker.map_err(|error| failed(error.to_string()))?;
        if marker.root.is_some() {
            continue;
        }
        let registers = registers.get_or_insert_with(|| Registers::new(body));
        let source = DataSource::new(registers, marker.operand, index).map_err(&failed)?;
        let guard = marker.guard.map(|guard| (guard.predicate.to_owned(), guard.negated));
        places.push(DataPlace { statement: index, site: marker.site, source, guard });
    }
    let (first, last) =
        (places.iter().map(|place| place.site).min(), places.iter().map(|place| place.site).max());
    let (Some(first), Some(last)) = (first, last) else { return Ok((places, Sites::default())) };
    let count = last - first + 1;
    if usize::from(count) > MAX_KERNEL_SITES {
        return Err(SpliceError::Sites { kernel: function.name.to_owned(), sites: count.into() });
    }
    Ok((places, Sites { first, count }))
}

impl DataSource {
    /// Parses an address in brackets or a register at a statement, or returns a description of the problem.
    pub(crate) fn new(registers: &Registers<'_>, operand: &str, statement: usize) -> Result<Self, String> {
        let bits_of = |name: &str| match registers.register(name, statement).map(bits) {
            None => Ok(None),
            Some(Some(bits)) => Ok(Some(bits)),
            Some(None) => Err(format!("`{name}` is of a type that is not known")),
        };
        let Some(inner) = operand.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
            return match bits_of(operand)? {
                Some(bits @ (1 | 8 | 16 | 32 | 64)) => Ok(Self::Value { register: operand.to_owned(), bits }),
                _ => Err(format!("`{operand}` is no register of at most 64 bits")),
            };
        };
        let sign = inner.find(['+', '-']).filter(|sign| *sign > 0);
        let (base, added) = sign.map_or((inner, ""), |sign| inner.split_at(sign));
        let offset = parse_offset(added).ok_or_else(|| format!("`{added}` is no offset"))?;
        match bits_of(base)? {
            Some(bits @ (32 | 64)) => Ok(Self::Address { register: base.to_owned(), bits, offset }),
            Some(bits) => Err(format!("`{base}` has {bits} bits, which are no address")),
            None if offset == 0 => Ok(Self::Constant(base.to_owned())),
            None => Ok(Self::Constant(format!("{base}+{offset}"))),
        }
    }
}

/// Parses `+16`, `-4`, `+-4` or an empty text.
fn parse_offset(text: &str) -> Option<i64> {
    if text.is_empty() {
        return Some(0);
    }
    let digits = text.strip_prefix('+').unwrap_or(text);
    let (negative, digits) = digits.strip_prefix('-').map_or((false, digits), |digits| (true, digits));
    let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let number = match hexadecimal {
        Some(digits) => i64::from_str_radix(digits, 16).ok()?,
        None => digits.trim_end_matches('U').parse::<i64>().ok()?,
    };
    i32::try_from(number).ok()?;
    Some(if negative { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read() {
        let text = ".version 8.0\n.target sm_90\n.entry k() {
            .reg .b64 %rd<3>; .reg .pred %p<2>; .reg .b32 %r<4>; .reg .f16x2 %h; ret; }";
        let module = Module::parse(text).expect("it is PTX");
        let body = module.functions[0].body.as_ref().expect("it has a body");
        let registers = Registers::new(body);
        let at = body.instructions().next().expect("an instruction").0;
        let of = |operand: &str| DataSource::new(&registers, operand, at);
        let address = |register: &str, bits, offset| {
            Ok(DataSource::Address { register: register.to_owned(), bits, offset })
        };
        assert_eq!(of("[%rd1]"), address("%rd1", 64, 0));
        assert_eq!(of("[%r3+-16]"), address("%r3", 32, -16));
        assert_eq!(of("[%r3-0x10]"), address("%r3", 32, -16));
        assert_eq!(of("[sums+8]"), Ok(DataSource::Constant("sums+8".to_owned())));
        assert_eq!(of("[4096]"), Ok(DataSource::Constant("4096".to_owned())));
        assert_eq!(of("%p1"), Ok(DataSource::Value { register: "%p1".to_owned(), bits: 1 }));
        for operand in ["%rd3", "%h", "[%p1]", "[%rd1+x]", "[%rd1+99999999999]", "[%rd1*2]", ""] {
            let found = of(operand);
            assert!(found.is_err() || operand == "[%rd1*2]", "{operand}: {found:?}");
        }
    }
}

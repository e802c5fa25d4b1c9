//! Parses addresses: `[%rd1+8]`, `[name]`, `[name+4]`.

use super::op::{Address, Memory};
use super::operand::{Problem, number, register};
use super::program::Names;

pub(super) fn address(names: &Names, memory: Memory, text: &str) -> Result<Address, Problem> {
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let inner = inner.ok_or_else(|| format!("`{text}` is no address"))?.trim();
    let sign = inner.find(['+', '-']).filter(|sign| *sign > 0);
    let (base, offset) = match sign {
        None => (inner, 0),
        Some(sign) => {
            let digits = inner[sign..].trim_start_matches('+').trim();
            (inner[..sign].trim(), number(digits).ok_or_else(|| format!("`{digits}` is no offset"))?)
        }
    };
    if let Some(variable) = names.variable(base) {
        if variable.memory != memory {
            return Err(format!("`{base}` is in {} memory", variable.memory.name()));
        }
        let start = variable.offset as u64;
        // The size of dynamic shared memory is known at the launch only.
        let within = (!variable.dynamic).then_some((start, start + variable.bytes as u64));
        return Ok(Address { base: None, offset: start.wrapping_add(offset), within });
    }
    if let Some(address) = number(base) {
        return Ok(Address { base: None, offset: address.wrapping_add(offset), within: None });
    }
    let bits = match memory {
        Memory::Shared | Memory::Local if names.register(base).is_some_and(|(_, bits)| bits == 32) => 32,
        _ => 64,
    };
    Ok(Address { base: Some(register(names, base, bits, false)?), offset, within: None })
}

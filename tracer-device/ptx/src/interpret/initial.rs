//! Initial values of a module's variables.

use super::op::Value;
use super::operand::{number, value};
use super::program::Names;

/// Parses an initializer: numbers, addresses and lists of them. Returns `None` for other kinds.
pub(super) fn bytes(names: &Names, ty: &str, length: usize, text: &str) -> Option<Vec<u8>> {
    let size: usize = ty.rsplit('.').next()?.get(1..)?.parse::<usize>().ok()? / 8;
    let mut bytes = Vec::with_capacity(length);
    for element in text.trim().trim_end_matches(';').split([',', '{', '}']).map(str::trim) {
        if element.is_empty() {
            continue;
        }
        let address = element.strip_prefix("generic(").and_then(|rest| rest.split_once(')'));
        let held = match address {
            Some((name, rest)) => {
                let Ok(Value::Immediate(address)) = value(names, name.trim(), 64, false) else { return None };
                let added = rest.trim().trim_start_matches('+').trim();
                address.wrapping_add(if added.is_empty() { 0 } else { number(added)? })
            }
            None => match value(names, element, 64, false) {
                Ok(Value::Immediate(held)) => held,
                _ => return None,
            },
        };
        bytes.extend_from_slice(held.to_le_bytes().get(..size)?);
    }
    if bytes.len() > length {
        return None;
    }
    bytes.resize(length, 0);
    Some(bytes)
}

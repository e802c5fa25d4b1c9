//! Parses operands.

use super::op::{Memory, Register, Special, Value};
use super::program::Names;
use crate::Instruction;
use crate::parse::parse_u64;
use crate::splice::DataMarker;

/// Description of a problem with an operand or an instruction.
pub(super) type Problem = String;

/// Parses a register of the given size. With `wider`, larger registers are accepted too.
pub(super) fn register(names: &Names, text: &str, bits: u32, wider: bool) -> Result<Register, Problem> {
    let (register, width) =
        names.register(text).ok_or_else(|| format!("`{text}` is no declared register"))?;
    if width == bits || wider && width > bits && bits > 1 {
        return Ok(register);
    }
    Err(format!("`{text}` has {width} bits, and the instruction takes {bits}"))
}

/// Parses a register, a number, a special register or the address of a variable or function.
pub(super) fn value(names: &Names, text: &str, bits: u32, wider: bool) -> Result<Value, Problem> {
    if let Some(number) = number(text) {
        return Ok(Value::Immediate(number));
    }
    if let Some((special, width)) = special(text) {
        let fits = width == bits || wider && width > bits;
        return if fits { Ok(Value::Special(special)) } else { Err(format!("`{text}` has {width} bits")) };
    }
    // A number may be added to a variable's address.
    let (name, added) = match text.split_once('+') {
        Some((name, added)) => (name.trim(), number(added.trim()).unwrap_or_default()),
        None => (text, 0),
    };
    if let Some(variable) = names.variable(name) {
        let address = (variable.offset as u64).wrapping_add(added);
        let is_local = variable.memory == Memory::Local;
        return Ok(if is_local { Value::Local(address) } else { Value::Immediate(address) });
    }
    if let Some(address) = names.function(text) {
        return Ok(Value::Immediate(address));
    }
    register(names, text, bits, wider).map(Value::Register)
}

/// Parses an integer, or the bits of a floating-point number.
pub(super) fn number(text: &str) -> Option<u64> {
    for (prefixes, digits) in [(["0f", "0F"], 8), (["0d", "0D"], 16)] {
        let bits = prefixes.iter().find_map(|prefix| text.strip_prefix(prefix));
        if let Some(bits) = bits.filter(|bits| bits.len() == digits) {
            return u64::from_str_radix(bits, 16).ok();
        }
    }
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits.trim_start()),
        None => (false, text),
    };
    let magnitude = parse_u64(digits)?;
    Some(if negative { magnitude.wrapping_neg() } else { magnitude })
}

/// Returns the parts of `{a, b}`. A text without braces is a single part.
pub(super) fn parts(text: &str) -> Vec<&str> {
    match text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
        Some(list) => list.split(',').map(str::trim).collect(),
        None => vec![text],
    }
}

fn special(text: &str) -> Option<(Special, u32)> {
    let name = text.strip_prefix('%')?;
    if let Some((name, axis)) = name.split_once('.') {
        let axis = ["x", "y", "z"].iter().position(|known| *known == axis)?;
        let special = match name {
            "tid" => Special::Thread(axis),
            "ntid" => Special::BlockSize(axis),
            "ctaid" => Special::Block(axis),
            "nctaid" => Special::GridSize(axis),
            _ => return None,
        };
        return Some((special, 32));
    }
    match name {
        "laneid" => Some((Special::Lane, 32)),
        "lanemask_lt" => lane_mask(true, false, false),
        "lanemask_le" => lane_mask(true, true, false),
        "lanemask_eq" => lane_mask(false, true, false),
        "lanemask_ge" => lane_mask(false, true, true),
        "lanemask_gt" => lane_mask(false, false, true),
        "warpid" => Some((Special::Warp, 32)),
        "nwarpid" => Some((Special::Warps, 32)),
        "smid" => Some((Special::Multiprocessor, 32)),
        "nsmid" => Some((Special::Multiprocessors, 32)),
        "clock" => Some((Special::ClockLow, 32)),
        "clock64" => Some((Special::Clock, 64)),
        "globaltimer" => Some((Special::GlobalTimer, 64)),
        "dynamic_smem_size" => Some((Special::DynamicShared, 32)),
        _ => None,
    }
}

fn lane_mask(below: bool, own: bool, above: bool) -> Option<(Special, u32)> {
    Some((Special::LaneMask { below, own, above }, 32))
}

/// Returns the index of the operand that a data marker names, with the site.
pub(super) fn operand_of(marker: DataMarker<'_>, instruction: &Instruction<'_>) -> Option<(u16, usize)> {
    let is_named = |text: &str| text.split_ascii_whitespace().collect::<String>() == marker.operand;
    let operand = instruction.operands.iter().position(|operand| is_named(operand.text))?;
    Some((marker.site, operand))
}

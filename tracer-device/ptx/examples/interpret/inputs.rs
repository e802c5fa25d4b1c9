//! Generic inputs of kernels: a separate buffer for each pointer, and small numbers.

use warptrace_ptx::interpret::Memory;
use warptrace_ptx::{Function, Instruction};

/// Size of a buffer in bytes.
const BUFFER: usize = 1 << 15;
/// Address of the first buffer, and distance between buffers.
const FIRST: u64 = 1 << 40;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix {
    /// Whether buffers hold floating-point numbers. Otherwise they hold integers.
    pub(crate) floats: bool,
    pub(crate) number: u64,
}

pub(crate) const MIXES: [Mix; 6] = [
    Mix { floats: true, number: 40 },
    Mix { floats: false, number: 40 },
    Mix { floats: true, number: 8 },
    Mix { floats: false, number: 8 },
    Mix { floats: false, number: 2 },
    Mix { floats: false, number: 1 },
];

/// A kernel's parameters, and the memory that they refer to.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    pub(crate) parameters: Vec<Vec<u8>>,
    pub(crate) memory: Memory,
    pub(crate) buffers: Vec<u64>,
}

impl Inputs {
    /// Makes inputs for a kernel with parameters of these sizes.
    pub(crate) fn new(kernel: &Function<'_>, sizes: &[usize], mix: Mix) -> Self {
        let mut inputs = Self { parameters: Vec::new(), memory: Memory::new(), buffers: Vec::new() };
        for (param, size) in kernel.params.iter().zip(sizes) {
            let mut bytes = vec![0; *size];
            for (offset, found) in loads(kernel, param.name) {
                let (value, length) = match found {
                    Loaded::Pointer => (inputs.buffer(mix), 8),
                    Loaded::Integer(length) => (mix.number, length),
                    Loaded::Single => (1.5_f32.to_bits().into(), 4),
                    Loaded::Double => (1.5_f64.to_bits(), 8),
                };
                let place = offset.checked_add(length).and_then(|end| bytes.get_mut(offset..end));
                // Keeps the pointer in a slot that was already filled.
                if let Some(place) = place.filter(|place| place.iter().all(|byte| *byte == 0)) {
                    place.copy_from_slice(&value.to_le_bytes()[..length]);
                }
            }
            inputs.parameters.push(bytes);
        }
        inputs
    }

    fn buffer(&mut self, mix: Mix) -> u64 {
        let number = self.buffers.len() as u64;
        let address = FIRST * (number + 1);
        let words = (0..BUFFER as u64 / 4).map(|word| {
            let small = ((word + number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as u32;
            if mix.floats { (small as f32 / 4.0).to_bits() } else { small % 8 }
        });
        self.memory.declare(address, words.flat_map(u32::to_le_bytes).collect());
        self.buffers.push(address);
        address
    }
}

/// Type of a value loaded from a parameter.
enum Loaded {
    Pointer,
    /// With this size in bytes.
    Integer(usize),
    Single,
    Double,
}

/// Returns the values that a kernel loads from a parameter, by offset.
fn loads<'f>(kernel: &'f Function<'_>, param: &'f str) -> impl Iterator<Item = (usize, Loaded)> + 'f {
    let instructions = kernel.body.iter().flat_map(|body| body.instructions()).map(|(_, found)| found);
    let loads = instructions.filter(|found| found.name() == "ld" && found.has_modifier("param"));
    loads.flat_map(move |load| {
        let mut found = Vec::new();
        if let [to, from, ..] = &load.operands[..]
            && let Some(offset) = offset_in(from.text, param)
        {
            let registers = to.text.trim_matches(['{', '}']).split(',').map(str::trim);
            let last = load.modifiers().last().unwrap_or_default();
            let length = last.get(1..).and_then(|bits| bits.parse::<usize>().ok()).unwrap_or(32) / 8;
            for (index, register) in registers.enumerate() {
                let kind = match (last, length) {
                    ("f32", _) => Loaded::Single,
                    ("f64", _) => Loaded::Double,
                    (_, 8) if is_address(kernel, register) => Loaded::Pointer,
                    _ => Loaded::Integer(length),
                };
                found.push((offset + index * length, kind));
            }
        }
        found
    })
}

/// Returns the offset in an address such as `[name+8]` if it refers to the parameter.
fn offset_in(address: &str, param: &str) -> Option<usize> {
    let inside = address.strip_prefix('[')?.strip_suffix(']')?;
    let (name, offset) = inside.split_once('+').map_or((inside, "0"), |(name, offset)| (name, offset));
    (name.trim() == param).then(|| offset.trim().parse().ok())?
}

/// Returns true if a register is used as an address.
fn is_address(kernel: &Function<'_>, register: &str) -> bool {
    let uses = |instruction: &Instruction<'_>| {
        let converted = instruction.name() == "cvta" && instruction.has_modifier("to");
        let is_it = |text: &str| text == register || text.starts_with(&format!("[{register}"));
        instruction
            .operands
            .iter()
            .any(|operand| is_it(operand.text) && (converted || operand.text.starts_with('[')))
    };
    kernel.body.iter().flat_map(|body| body.instructions()).any(|(_, instruction)| uses(instruction))
}

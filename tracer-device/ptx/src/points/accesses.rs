//! Memory accesses of an instruction: addresses, kinds and sizes.

use warptrace_abi::data::{SiteKind, SiteSpace};

use crate::Instruction;

fn space_of(modifier: &str) -> Option<SiteSpace> {
    match modifier {
        "global" => Some(SiteSpace::Global),
        "shared" | "shared::cta" => Some(SiteSpace::Shared),
        "shared::cluster" => Some(SiteSpace::Cluster),
        "local" => Some(SiteSpace::Local),
        _ => None,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    /// Index of the address among the operands in brackets.
    pub(super) bracketed: usize,
    pub(super) kind: SiteKind,
    pub(super) space: SiteSpace,
    pub(super) bytes: u32,
    pub(super) elements: u32,
}

/// Size of a tensor map in bytes.
const TENSOR_MAP_BYTES: u32 = 128;
/// Size in bytes of a matrix row, for which a lane gives the address.
const ROW_BYTES: u32 = 16;
pub(super) const CACHE: [&str; 8] = ["ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc"];

/// Returns the accesses of an instruction that can be recorded.
pub(super) fn accesses_of(instruction: &Instruction<'_>) -> Vec<Access> {
    let has = |modifier| instruction.has_modifier(modifier);
    let left_out = ["param", "param::entry", "param::func", "const"];
    if left_out.into_iter().any(has) {
        return Vec::new();
    }
    let (bytes, elements) = size_of_access(instruction);
    let space = instruction.modifiers().find_map(space_of).unwrap_or(SiteSpace::Generic);
    let one = |kind| vec![Access { bracketed: 0, kind, space, bytes, elements }];
    let first = instruction.modifiers().next().unwrap_or_default();
    match instruction.name() {
        "ld" | "ldu" => one(SiteKind::Load),
        "st" if first == "bulk" => {
            vec![Access { bytes: number(instruction, 1), elements: 1, ..one(SiteKind::Store)[0] }]
        }
        "st" => one(SiteKind::Store),
        "atom" => one(SiteKind::Atomic),
        "red" => one(SiteKind::Reduction),
        "ldmatrix" | "stmatrix" => {
            let kind = if instruction.name() == "ldmatrix" { SiteKind::Load } else { SiteKind::Store };
            let space = if space == SiteSpace::Generic { SiteSpace::Shared } else { space };
            vec![Access { bracketed: 0, kind, space, bytes: ROW_BYTES, elements: 1 }]
        }
        "multimem" if first == "ld_reduce" => one(SiteKind::Load),
        "multimem" if first == "st" => one(SiteKind::Store),
        "multimem" if first == "red" => one(SiteKind::Reduction),
        "cp" => copies(instruction),
        _ => Vec::new(),
    }
}

fn copies(instruction: &Instruction<'_>) -> Vec<Access> {
    let has = |modifier| instruction.has_modifier(modifier);
    let is_bulk = has("bulk") && !has("prefetch");
    if !is_bulk && !(has("async") && (has("ca") || has("cg"))) {
        return Vec::new();
    }
    let mut spaces = instruction.modifiers().filter_map(space_of);
    let (Some(to), Some(from)) = (spaces.next(), spaces.next()) else { return Vec::new() };
    let writes = if has("reduce") { SiteKind::Reduction } else { SiteKind::CopyTo };
    let bytes = if has("tensor") { 0 } else { number(instruction, 2) };
    let access = |bracketed, kind, space| Access { bracketed, kind, space, bytes, elements: 1 };
    let both = [access(0, writes, to), access(1, SiteKind::CopyFrom, from)];
    // A tensor map and coordinates describe the side in global memory.
    let described = |access: Access| match access.space {
        SiteSpace::Global if has("tensor") => {
            Access { kind: SiteKind::Load, space: SiteSpace::Generic, bytes: TENSOR_MAP_BYTES, ..access }
        }
        _ => access,
    };
    both.map(described).to_vec()
}

/// Returns an operand as a number; 0 if it is not a number.
fn number(instruction: &Instruction<'_>, operand: usize) -> u32 {
    instruction.operands.get(operand).and_then(|operand| operand.text.parse().ok()).unwrap_or_default()
}

fn size_of_access(instruction: &Instruction<'_>) -> (u32, u32) {
    let bits = |ty: &str| match ty {
        "f16x2" | "bf16x2" => Some(32),
        "bf16" => Some(16),
        ty => ty.strip_prefix(['b', 'u', 's', 'f'])?.parse::<u32>().ok(),
    };
    let bytes = instruction.modifiers().filter_map(bits).last().unwrap_or_default() / 8;
    let elements = instruction.modifiers().find_map(|modifier| match modifier {
        "v2" => Some(2),
        "v4" => Some(4),
        "v8" => Some(8),
        _ => None,
    });
    (bytes * elements.unwrap_or(1), elements.unwrap_or(1))
}

/// Returns an address as it is written in a marker: without blanks and without a tensor's coordinates.
pub(super) fn address_of(operand: &str) -> String {
    let mut text: String = operand.split_whitespace().collect();
    if let Some((map, _)) = text.split_once(",{") {
        text = format!("{map}]");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Module;

    /// Returns the accesses of one instruction: address, kind, space, bytes and elements.
    fn found(instruction: &str) -> Vec<(String, SiteKind, SiteSpace, u32, u32)> {
        let text = format!(".version 8.6\n.target sm_100a\n.entry k() {{ {instruction}; ret; }}");
        let module = Module::parse(&text).expect("it is PTX");
        let body = module.functions[0].body.as_ref().expect("it has a body");
        let (_, instruction) = body.instructions().next().expect("an instruction");
        let bracketed: Vec<String> = instruction
            .operands
            .iter()
            .filter(|operand| operand.text.starts_with('['))
            .map(|operand| address_of(operand.text))
            .collect();
        let accesses = accesses_of(instruction).into_iter();
        accesses
            .map(|it| (bracketed[it.bracketed].clone(), it.kind, it.space, it.bytes, it.elements))
            .collect()
    }

    #[test]
    fn instructions_that_access_memory_are_found() {
        use SiteKind::{Atomic, CopyFrom, CopyTo, Load, Reduction, Store};
        use SiteSpace::{Cluster, Generic, Global, Local, Shared};
        let one = |text, address: &str, kind, space, bytes, elements| {
            assert_eq!(found(text), [(address.to_owned(), kind, space, bytes, elements)], "{text}");
        };
        one(
            "ld.global.nc.L1::no_allocate.v4.f32 {%f1, %f2, %f3, %f4}, [ %rd1 + 16 ]",
            "[%rd1+16]",
            Load,
            Global,
            16,
            4,
        );
        one("ld.volatile.shared::cta.u8 %rs1, [tile]", "[tile]", Load, Shared, 1, 1);
        one("ld.acquire.gpu.b32 %r1, [%rd1]", "[%rd1]", Load, Generic, 4, 1);
        one("st.local.v2.b64 [%SP+-8], {%rd1, %rd2}", "[%SP+-8]", Store, Local, 16, 2);
        one(
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%r1], %rd1, [%r2]",
            "[%r1]",
            Store,
            Cluster,
            8,
            1,
        );
        one("st.bulk.weak.shared::cta [%rd1], 256, 0", "[%rd1]", Store, Shared, 256, 1);
        one("atom.global.add.noftz.f16x2 %r1, [%rd1], %r2", "[%rd1]", Atomic, Global, 4, 1);
        one("atom.cas.b64 %rd2, [%rd1+8], %rd3, %rd4", "[%rd1+8]", Atomic, Generic, 8, 1);
        one("red.shared.max.s32 [%r1], %r2", "[%r1]", Reduction, Shared, 4, 1);
        one(
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r5]",
            "[%r5]",
            Load,
            Shared,
            16,
            1,
        );
        one("multimem.red.relaxed.sys.global.add.f32 [%rd1], %f1", "[%rd1]", Reduction, Global, 4, 1);
        let two =
            |text, first: (&str, SiteKind, SiteSpace, u32), second: (&str, SiteKind, SiteSpace, u32)| {
                let of = |(address, kind, space, bytes): (&str, _, _, _)| {
                    (str::to_owned(address), kind, space, bytes, 1)
                };
                assert_eq!(found(text), [of(first), of(second)], "{text}");
            };
        two(
            "cp.async.cg.shared.global.L2::128B [%r1], [%rd1+64], 16, %r2",
            ("[%r1]", CopyTo, Shared, 16),
            ("[%rd1+64]", CopyFrom, Global, 16),
        );
        two(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r2, [%r3]",
            ("[%r1]", CopyTo, Cluster, 0),
            ("[%rd1]", CopyFrom, Global, 0),
        );
        two(
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r1], 64",
            ("[%rd1]", Reduction, Global, 64),
            ("[%r1]", CopyFrom, Shared, 64),
        );
        two(
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4]",
            ("[%r1]", CopyTo, Cluster, 0),
            ("[%rd1]", Load, Generic, TENSOR_MAP_BYTES),
        );
        two(
            "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r2}], [%r1]",
            ("[%rd1]", Load, Generic, TENSOR_MAP_BYTES),
            ("[%r1]", CopyFrom, Shared, 0),
        );
        for text in [
            "ld.param.u64 %rd1, [k_param_0]",
            "ld.param::entry.u64 %rd1, [k_param_0]",
            "ld.const.f32 %f1, [table+4]",
            "prefetch.global.L2 [%rd1]",
            "cp.async.bulk.prefetch.L2.global [%rd1], 64",
            "cp.async.mbarrier.arrive.shared.b64 [%r1]",
            "cp.async.wait_all",
            "tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1, %r2}]",
            "mbarrier.arrive.shared.b64 %rd1, [%r1]",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }
}

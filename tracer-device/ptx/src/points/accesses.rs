//! Sites: the instructions that access memory, with a marker of data in front of each.

use std::fmt;
use std::sync::Arc;

use warptrace_abi::data::{MAX_KERNEL_SITES, MAX_SITE};
use warptrace_abi::marker::{DataGuard, DataMarker};
use warptrace_abi::recording::Spaces;

use super::source::{CallSite, Lines, SourcePlace};
use crate::registers::Registers;
use crate::splice::Source;
use crate::{Body, Cfg, Function, Instruction};

/// An instruction that accesses memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its number, 1 to [`MAX_SITE`].
    pub id: u16,
    /// The kernel's name as in the PTX, mangled.
    pub function: Arc<str>,
    /// What it does.
    pub kind: SiteKind,
    /// Where its addresses point.
    pub space: SiteSpace,
    /// Bytes that a lane touches, all elements of a vector; 0 if a register says how many.
    pub bytes: u32,
    /// Elements of a vector, at least 1.
    pub elements: u32,
    /// Whether a predicate may switch lanes off.
    pub is_predicated: bool,
    /// The cache operator, without its dot; empty if there is none.
    pub cache: Arc<str>,
    /// Location id of the events of the block that it lies in, or of those that imply them: each executes it
    /// once. 0 if there are none.
    pub location: u16,
    /// Line in the original text, from 1.
    pub ptx_line: usize,
    /// Column there in characters, from 1.
    pub ptx_column: usize,
    /// Where the source has it; `None` if the compiler did not say.
    pub source: Option<SourcePlace>,
    /// The calls through which that line was inlined into the kernel, innermost first.
    pub inlined_at: Arc<[CallSite]>,
}

/// What a site does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SiteKind {
    /// Reads memory.
    Load,
    /// Writes memory.
    Store,
    /// Changes memory in one step, and gives what was there.
    Atomic,
    /// Changes memory in one step.
    Reduction,
    /// Reads what an asynchronous copy writes elsewhere.
    CopyFrom,
    /// Writes what an asynchronous copy reads elsewhere.
    CopyTo,
}

/// The state space of a site's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SiteSpace {
    /// Any: the address says which one.
    Generic,
    /// Global memory.
    Global,
    /// Shared memory of the block.
    Shared,
    /// Shared memory of the cluster.
    Cluster,
    /// Local memory.
    Local,
}

impl SiteSpace {
    fn of_modifier(modifier: &str) -> Option<Self> {
        match modifier {
            "global" => Some(Self::Global),
            "shared" | "shared::cta" => Some(Self::Shared),
            "shared::cluster" => Some(Self::Cluster),
            "local" => Some(Self::Local),
            _ => None,
        }
    }

    /// Whether accesses to it are asked for.
    const fn is_among(self, spaces: Spaces) -> bool {
        match self {
            Self::Generic => !spaces.is_none(),
            Self::Global => spaces.global,
            Self::Shared | Self::Cluster => spaces.shared,
            Self::Local => spaces.local,
        }
    }
}

impl fmt::Display for SiteSpace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::Generic => "generic",
            Self::Global => "global",
            Self::Shared => "shared",
            Self::Cluster => "cluster",
            Self::Local => "local",
        })
    }
}

/// An address that an instruction uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Access {
    /// Which of the operands in brackets it is.
    bracketed: usize,
    kind: SiteKind,
    space: SiteSpace,
    bytes: u32,
    elements: u32,
}

/// Bytes of the description of a tensor.
const TENSOR_MAP_BYTES: u32 = 128;
/// Bytes of a row of a matrix, which a lane gives the address of.
const ROW_BYTES: u32 = 16;
/// Cache operators.
const CACHE: [&str; 8] = ["ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc"];

/// Finds what an instruction accesses, as far as that is recorded.
fn accesses_of(instruction: &Instruction<'_>) -> Vec<Access> {
    let has = |modifier| instruction.has_modifier(modifier);
    let left_out = ["param", "param::entry", "param::func", "const"];
    if left_out.into_iter().any(has) {
        return Vec::new();
    }
    let (bytes, elements) = size_of_access(instruction);
    let space = instruction.modifiers().find_map(SiteSpace::of_modifier).unwrap_or(SiteSpace::Generic);
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

/// The addresses of an asynchronous copy.
fn copies(instruction: &Instruction<'_>) -> Vec<Access> {
    let has = |modifier| instruction.has_modifier(modifier);
    let is_bulk = has("bulk") && !has("prefetch");
    if !is_bulk && !(has("async") && (has("ca") || has("cg"))) {
        return Vec::new();
    }
    let mut spaces = instruction.modifiers().filter_map(SiteSpace::of_modifier);
    let (Some(to), Some(from)) = (spaces.next(), spaces.next()) else { return Vec::new() };
    let writes = if has("reduce") { SiteKind::Reduction } else { SiteKind::CopyTo };
    let bytes = if has("tensor") { 0 } else { number(instruction, 2) };
    let access = |bracketed, kind, space| Access { bracketed, kind, space, bytes, elements: 1 };
    let both = [access(0, writes, to), access(1, SiteKind::CopyFrom, from)];
    // The side in global memory is given by the tensor's description and coordinates.
    let described = |access: Access| match access.space {
        SiteSpace::Global if has("tensor") => {
            Access { kind: SiteKind::Load, space: SiteSpace::Generic, bytes: TENSOR_MAP_BYTES, ..access }
        }
        _ => access,
    };
    both.map(described).to_vec()
}

/// Reads an operand that is a number; 0 if it is none.
fn number(instruction: &Instruction<'_>, operand: usize) -> u32 {
    instruction.operands.get(operand).and_then(|operand| operand.text.parse().ok()).unwrap_or_default()
}

/// Bytes and elements of what a lane accesses.
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

/// A site of a kernel, and where its marker stands.
pub(super) struct Found {
    pub(super) site: Site,
    /// Offset in the original text of the instruction.
    pub(super) at: usize,
    pub(super) marker: String,
}

/// The sites of a function.
#[derive(Default)]
pub(super) struct FoundSites {
    pub(super) sites: Vec<Found>,
    /// Why some accesses are not recorded.
    pub(super) unrecorded: Vec<String>,
}

/// Finds the accesses of a function that are asked for; `next` is the number of the first, and `location`
/// tells that of a block's events.
pub(super) fn find(
    function: &Function<'_>,
    body: &Body<'_>,
    flow: &Cfg,
    (spaces, next): (Spaces, u32),
    lines: &Lines,
    location: impl Fn(usize) -> u16,
) -> FoundSites {
    let mut found = FoundSites::default();
    let name: Arc<str> = function.name.into();
    let registers = Registers::of(body);
    // Those that are left out: in functions, and beyond what a kernel or a text may have.
    let (mut in_functions, mut too_many, mut unreadable) = (0_u32, 0_u32, Vec::new());
    for (index, instruction) in body.instructions() {
        let block = flow.block_of(index);
        if !flow.is_reachable(block) {
            continue;
        }
        for access in accesses_of(instruction).into_iter().filter(|access| access.space.is_among(spaces)) {
            if !function.is_entry() {
                in_functions += 1;
                continue;
            }
            let id = u32::try_from(found.sites.len()).ok().and_then(|before| next.checked_add(before));
            let id = id.and_then(|id| u16::try_from(id).ok()).filter(|id| *id <= MAX_SITE);
            let Some(id) = id.filter(|_| found.sites.len() < MAX_KERNEL_SITES) else {
                too_many += 1;
                continue;
            };
            let bracketed = instruction.operands.iter().filter(|operand| operand.text.starts_with('['));
            let operand = bracketed.map(|operand| address_of(operand.text)).nth(access.bracketed);
            let guard = instruction
                .guard
                .map(|guard| DataGuard { predicate: guard.predicate, negated: guard.negated });
            let operand = operand.unwrap_or_default();
            let marker = DataMarker { site: id, operand: &operand, guard }.to_string();
            let is_read = DataMarker::parse(&marker).is_some_and(|marker| marker.is_ok());
            if !is_read || Source::of(&registers, &operand, index).is_err() {
                unreadable.push(operand);
                continue;
            }
            let (source, inlined_at) = lines.first_of(index..index + 1);
            let cache = instruction.modifiers().find(|modifier| CACHE.contains(modifier));
            let site = Site {
                id,
                function: Arc::clone(&name),
                kind: access.kind,
                space: access.space,
                bytes: access.bytes,
                elements: access.elements,
                is_predicated: guard.is_some(),
                cache: cache.unwrap_or_default().into(),
                location: location(block),
                // Filled in when all offsets are known.
                ptx_line: 0,
                ptx_column: 0,
                source,
                inlined_at,
            };
            found.sites.push(Found { site, at: body.statements[index].span.start, marker });
        }
    }
    if in_functions != 0 {
        found.unrecorded.push(format!(
            "it is not inlined: {in_functions} of its accesses are not recorded, only a kernel's own are"
        ));
    }
    if too_many != 0 {
        found.unrecorded.push(format!(
            "{too_many} of its accesses are not recorded: a kernel has at most {MAX_KERNEL_SITES} sites, a text {MAX_SITE}"
        ));
    }
    if let Some(first) = unreadable.first() {
        let count = unreadable.len();
        found.unrecorded.push(format!(
            "{count} of its accesses are not recorded: `{first}` cannot be read as an address"
        ));
    }
    found
}

/// Returns an address as a marker has it: without blanks, and of a tensor's without its coordinates.
fn address_of(operand: &str) -> String {
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

    /// What is found of one instruction: address, kind, space, bytes and elements.
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

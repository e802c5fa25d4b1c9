//! Waits: barriers, waits for copies, sleeps, and loops that poll memory. A wait has a point at its start and
//! its end. It is one instruction, or a loop that only polls: the loop stores nothing and calls nothing, the
//! polled address does not change in it, and the polled value decides whether it continues.

use std::collections::HashSet;

use super::blocks::Blocks;
use super::counted::{enters, leaves};
use crate::uniform::words;
use crate::{Cfg, Instruction};

pub(super) struct Wait {
    pub(super) block: usize,
    /// The statement of the instruction that waits or polls.
    pub(super) statement: usize,
    pub(super) is_barrier: bool,
    /// Offsets that lanes pass at the start and at the end of the wait.
    pub(super) begins: Vec<usize>,
    pub(super) ends: Vec<usize>,
}

pub(super) fn find(blocks: &Blocks<'_>) -> Vec<Wait> {
    let flow = blocks.flow;
    let mut waits = Vec::new();
    let mut inside = HashSet::new();
    let mut blocks_of = vec![Vec::new(); flow.loops().len()];
    for block in 0..flow.blocks().len() {
        flow.loop_of(block).into_iter().for_each(|this| blocks_of[this].push(block));
    }
    for (this, all) in flow.loops().iter().zip(blocks_of).filter(|(this, _)| this.innermost) {
        if let Some(wait) = polling(blocks, this.header, &all) {
            waits.push(wait);
            inside.extend(all);
        }
    }
    let reachable = |block: &usize| flow.is_reachable(*block) && !inside.contains(block);
    for block in (0..flow.blocks().len()).filter(reachable) {
        let statements = flow.blocks()[block].statements.clone();
        let instruction = |index: usize| blocks.body.statements[index].instruction();
        let waiting = statements.filter(|index| instruction(*index).is_some_and(is_wait));
        waits.extend(waiting.map(|statement| Wait {
            block,
            statement,
            is_barrier: instruction(statement).is_some_and(is_barrier),
            begins: vec![blocks.body.statements[statement].span.start],
            ends: vec![blocks.behind(statement)],
        }));
    }
    waits.sort_by_key(|wait| wait.statement);
    waits
}

/// Returns true if lanes wait for a copy, the clock or other lanes; `bar.warp.sync` does not count.
fn is_wait(instruction: &Instruction<'_>) -> bool {
    let has = |modifier| instruction.has_modifier(modifier);
    match instruction.name() {
        "bar" | "barrier" => !has("warp") && (has("sync") || has("red") || has("wait")),
        "mbarrier" => has("try_wait"),
        "cp" => has("wait_group") || has("wait_all"),
        "wgmma" => has("wait_group"),
        "tcgen05" => has("wait::ld") || has("wait::st"),
        "griddepcontrol" => has("wait"),
        "nanosleep" => true,
        _ => false,
    }
}

/// Returns true if lanes wait for other lanes or an mbarrier's phase, at the instruction or by polling.
pub(super) fn keeps_lanes(instruction: &Instruction<'_>) -> bool {
    let has = |modifier| instruction.has_modifier(modifier);
    match instruction.name() {
        "bar" | "barrier" => has("sync") || has("red") || has("wait"),
        "mbarrier" => has("try_wait") || has("test_wait"),
        _ => false,
    }
}

fn is_barrier(instruction: &Instruction<'_>) -> bool {
    matches!(instruction.name(), "bar" | "barrier") && !instruction.has_modifier("cluster")
}

/// Returns true if an instruction reads a value that other threads or a copy may change.
fn is_poll(instruction: &Instruction<'_>) -> bool {
    let strong = ["volatile", "relaxed", "acquire", "mmio"];
    match instruction.name() {
        "mbarrier" => instruction.has_modifier("try_wait") || instruction.has_modifier("test_wait"),
        "ld" => strong.iter().any(|one| instruction.has_modifier(one)),
        "atom" => true,
        _ => false,
    }
}

/// Instructions that change memory, wait or call. A loop that contains one does more than poll.
const CHANGING: [&str; 14] = [
    "st", "red", "call", "bar", "barrier", "cp", "wgmma", "tcgen05", "mbarrier", "stmatrix", "sust", "sured",
    "suatom", "multimem",
];

fn changes_nothing(instruction: &Instruction<'_>) -> bool {
    !CHANGING.contains(&instruction.name())
}

/// Returns the wait of a loop with these blocks, if it only polls and its start and end can have markers.
fn polling(blocks: &Blocks<'_>, header: usize, all: &[usize]) -> Option<Wait> {
    let statements = || all.iter().flat_map(|block| blocks.flow.blocks()[*block].statements.clone());
    let instructions = || statements().filter_map(|at| Some((at, blocks.body.statements[at].instruction()?)));
    let mut written: HashSet<&str> = HashSet::new();
    for (_, instruction) in instructions() {
        written.extend(results(instruction));
    }
    let mut polls = instructions().filter(|(_, instruction)| is_poll(instruction));
    let (first, _) = polls.clone().next()?;
    let stays = |(_, poll): (usize, &Instruction<'_>)| read(poll).all(|word| !written.contains(word));
    if !polls.all(stays) || !instructions().all(|(_, it)| is_poll(it) || changes_nothing(it)) {
        return None;
    }
    // Values that depend on the polls.
    let mut polled: HashSet<&str> = HashSet::new();
    loop {
        let before = polled.len();
        for (_, instruction) in instructions() {
            if is_poll(instruction) || read(instruction).any(|word| polled.contains(word)) {
                polled.extend(results(instruction));
            }
        }
        if polled.len() == before {
            break;
        }
    }
    let decides = |block: &usize| {
        let last = blocks.terminator(*block).and_then(|last| blocks.body.statements[last].instruction());
        let guard = last.and_then(|last| last.guard);
        leads_out(blocks.flow, *block) && guard.is_some_and(|guard| polled.contains(guard.predicate))
    };
    if !all.iter().any(decides) {
        return None;
    }
    let begins: Vec<usize> = enters(blocks, header)?.into_iter().collect();
    let ends: Vec<usize> = leaves(blocks, all)?.into_iter().collect();
    (!begins.is_empty() && !ends.is_empty()).then_some(Wait {
        block: header,
        statement: first,
        is_barrier: false,
        begins,
        ends,
    })
}

fn leads_out(flow: &Cfg, block: usize) -> bool {
    flow.successors(block).iter().any(|edge| flow.loop_of(edge.to) != flow.loop_of(block))
}

pub(super) fn results<'a>(instruction: &Instruction<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
    let writes = !matches!(instruction.name(), "bra" | "brx" | "ret" | "exit" | "nanosleep");
    let first = instruction.operands.first().filter(|first| writes && !first.text.starts_with('['));
    first.map(|first| first.text).into_iter().flat_map(words)
}

fn read<'a>(instruction: &Instruction<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
    let from = usize::from(results(instruction).next().is_some());
    let operands: Vec<&'a str> = instruction.operands.iter().skip(from).map(|operand| operand.text).collect();
    let guard = instruction.guard.map(|guard| guard.predicate);
    operands.into_iter().flat_map(words).chain(guard)
}

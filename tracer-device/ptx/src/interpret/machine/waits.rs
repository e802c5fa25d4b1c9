//! Waits of groups: at barriers, and for lanes that an instruction names.

use std::collections::BTreeMap;

use super::{Group, Machine};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::interpret) enum Wait {
    #[default]
    Nothing,
    /// For other threads of the block: the given number, or all that have not ended.
    Block { barrier: u64, threads: Option<u64> },
    /// For the lanes of its warp that its next instruction names.
    Warp,
}

impl Machine<'_> {
    /// Releases the threads of complete barriers and advances the clocks of their warps to the latest one.
    pub(super) fn pass_barriers(&mut self) {
        let mut arrived: BTreeMap<(usize, u64), (u64, Option<u64>)> = BTreeMap::new();
        let mut live: BTreeMap<usize, u64> = BTreeMap::new();
        for group in &self.groups {
            let (block, lanes) = (self.block(group), u64::from(group.mask.count_ones()));
            *live.entry(block).or_default() += lanes;
            if let Wait::Block { barrier, threads } = group.waits {
                let found = arrived.entry((block, barrier)).or_insert((0, threads));
                found.0 += lanes;
            }
        }
        let begin = self.executor.launch.clock;
        let since = |warp: &super::Warp| warp.clock.wrapping_sub(begin);
        let mut opened: BTreeMap<(usize, u64), (u64, Vec<usize>)> = BTreeMap::new();
        let warps = &self.warps;
        for group in &mut self.groups {
            let Wait::Block { barrier, .. } = group.waits else { continue };
            let block = warps[group.warp].block_index;
            let Some((here, threads)) = arrived.get(&(block, barrier)) else { continue };
            let all = live.get(&block).copied().unwrap_or_default();
            if *here >= threads.unwrap_or(all).min(all) {
                group.waits = Wait::Nothing;
                let (last, passing) = opened.entry((block, barrier)).or_default();
                *last = since(&warps[group.warp]).max(*last);
                passing.push(group.warp);
            }
        }
        for (last, passing) in opened.into_values() {
            passing.into_iter().for_each(|warp| self.warps[warp].clock = begin.wrapping_add(last));
        }
    }

    fn block(&self, group: &Group) -> usize {
        self.warps[group.warp].block_index
    }

    /// Makes the waiting groups of a warp check again, after some lanes may have ended.
    pub(super) fn wake(&mut self, warp: usize) {
        let waiting = self.groups.iter_mut().filter(|group| group.warp == warp && group.waits == Wait::Warp);
        waiting.for_each(|group| group.waits = Wait::Nothing);
    }

    /// Joins the groups that wait at this instruction, and returns true, if all live named lanes are here.
    pub(super) fn gather(&mut self, current: usize, named: u32) -> bool {
        let group = self.groups[current];
        let of_warp = self.groups.iter().filter(|other| other.warp == group.warp);
        let live = of_warp.clone().fold(0, |lanes, other| lanes | other.mask);
        let waits = |other: &&Group| other.waits == Wait::Warp && other.at == group.at;
        let waiting: Vec<Group> =
            of_warp.filter(waits).filter(|other| other.mask & named != 0).copied().collect();
        let here = waiting.iter().fold(group.mask, |lanes, other| lanes | other.mask);
        if here != named & live {
            return false;
        }
        for other in waiting.iter().filter(|other| other.number != group.number) {
            let theirs = self.divergences[other.number as usize].clone();
            let mine = &mut self.divergences[group.number as usize];
            let common = mine.iter().zip(&theirs).take_while(|(one, other)| one == other).count();
            mine.truncate(common);
            self.groups.retain(|found| found.number != other.number);
            self.observed.joins += 1;
        }
        if let Some(found) = self.groups.iter_mut().find(|found| found.number == group.number) {
            found.mask = here;
        }
        true
    }
}

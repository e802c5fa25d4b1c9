//! Matches the launches and warps of two traces.

use std::collections::{BTreeMap, BTreeSet};

use crate::order::OrderItems;
use rustc_hash::FxHashMap;
use warptrace_decoder::TraceFile;
use warptrace_format::file::{LaunchInfo, WARP_LANES};

use crate::figures::WarpFigures;
use crate::selection::kernel_name;
use crate::warps::WarpTable;

/// Pairs the n-th launches of kernels with equal names in two traces. Pairs launches of kernels that only one
/// trace has by number. Keeps the order of the first trace.
pub(crate) fn launches(traces: [&TraceFile; 2]) -> Vec<[&LaunchInfo; 2]> {
    let [old, new] = traces.map(by_kernel);
    let mut pairs = Vec::new();
    let mut others: [Vec<&LaunchInfo>; 2] = [Vec::new(), Vec::new()];
    for (name, launches) in &old {
        match new.get(name) {
            Some(partners) => {
                pairs.extend(launches.iter().zip(partners).map(|(first, second)| [*first, *second]));
            }
            None => others[0].extend(launches),
        }
    }
    others[1].extend(new.iter().filter(|(name, _)| !old.contains_key(**name)).flat_map(|(_, found)| found));
    let by_number: BTreeMap<u32, &LaunchInfo> = others[1].iter().map(|info| (info.number(), *info)).collect();
    for info in &others[0] {
        pairs.extend(by_number.get(&info.number()).map(|partner| [*info, *partner]));
    }
    pairs.order_by_key(|[first, _]| first.number());
    pairs
}

fn by_kernel(trace: &TraceFile) -> BTreeMap<&str, Vec<&LaunchInfo>> {
    let mut found: BTreeMap<&str, Vec<&LaunchInfo>> = BTreeMap::new();
    for info in trace.launches() {
        found.entry(kernel_name(trace, info)).or_default().push(info);
    }
    found
}

pub(crate) fn kernels(trace: &TraceFile) -> BTreeSet<&str> {
    by_kernel(trace).into_keys().collect()
}

/// Calls `each` with pairs of warps: of equal index in launches of equal shape, otherwise of equal threads.
pub(crate) fn warps(
    launches: &[[&LaunchInfo; 2]],
    [old, new]: [&WarpTable; 2],
    mut each: impl FnMut([WarpFigures; 2]),
) {
    for [first, second] in launches {
        let (old, mut new) = (old.of_launch(first.number()), new.of_launch(second.number()).peekable());
        if (first.grid(), first.block()) == (second.grid(), second.block()) {
            for warp in old {
                while new.next_if(|other| other.warp < warp.warp).is_some() {}
                if let Some(other) = new.next_if(|other| other.warp == warp.warp) {
                    each([warp, other]);
                }
            }
            continue;
        }
        let threads = |warp: &WarpFigures, info| Threads::new(info, warp.warp);
        let partners: FxHashMap<Threads, WarpFigures> =
            new.filter_map(|warp| Some((threads(&warp, second)?, warp))).collect();
        for warp in old {
            if let Some(other) = threads(&warp, first).and_then(|threads| partners.get(&threads)) {
                each([warp, *other]);
            }
        }
    }
}

/// Threads of a warp. Two values are equal exactly if each lane has the same global coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Threads {
    /// Global coordinates of lane 0.
    first: [u64; 3],
    lanes: u32,
    /// If the lanes span several rows of their block: its width, and the column of lane 0. Otherwise zeros.
    rows: [u32; 2],
    /// If the lanes span several planes of their block: its height, and the row of lane 0. Otherwise zeros.
    planes: [u32; 2],
}

impl Threads {
    fn new(info: &LaunchInfo, warp: u32) -> Option<Self> {
        let id = info.stream_id(warp)?;
        let lanes = info.lane_mask(warp)?.count_ones();
        let size = info.block();
        let [width, height, _] = size;
        let thread = id.warp_in_block * WARP_LANES;
        let at = [thread % width, thread / width % height, thread / width / height];
        let coordinate =
            |axis: usize| u64::from(id.block[axis]) * u64::from(size[axis]) + u64::from(at[axis]);
        let last_row = at[1] + (at[0] + lanes - 1) / width;
        Some(Self {
            first: [0, 1, 2].map(coordinate),
            lanes,
            rows: if last_row > at[1] { [width, at[0]] } else { [0; 2] },
            planes: if last_row >= height { [height, at[1]] } else { [0; 2] },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(info: &LaunchInfo, warp: u32) -> Vec<[u32; 3]> {
        let id = info.stream_id(warp).expect("a warp of the launch");
        let [x, y, z] = info.block();
        let first = id.warp_in_block * WARP_LANES;
        (first..(first + WARP_LANES).min(x * y * z))
            .map(|thread| {
                let at = [thread % x, thread / x % y, thread / x / y];
                [0, 1, 2].map(|axis| id.block[axis] * info.block()[axis] + at[axis])
            })
            .collect()
    }

    #[test]
    fn warps_are_the_same_if_each_lane_is_the_same_thread() {
        let shapes = [
            ([8, 1, 1], [64, 1, 1]),
            ([4, 1, 1], [128, 1, 1]),
            ([11, 1, 1], [48, 1, 1]),
            ([2, 4, 1], [32, 4, 1]),
            ([4, 4, 1], [16, 4, 1]),
            ([4, 2, 1], [16, 8, 1]),
            ([8, 2, 2], [8, 2, 4]),
            ([8, 1, 1], [8, 4, 8]),
            ([1, 1, 1], [5, 5, 5]),
        ];
        let infos = shapes.map(|(grid, block)| LaunchInfo::new(0, 0, grid, block, 0).expect("a launch"));
        let mut same = 0;
        for first in &infos {
            for second in &infos {
                for (old, new) in
                    (0..first.warps()).flat_map(|old| (0..second.warps()).map(move |new| (old, new)))
                {
                    let is_same = Threads::new(first, old) == Threads::new(second, new);
                    assert_eq!(is_same, lanes(first, old) == lanes(second, new), "{first:?} {second:?}");
                    same += u64::from(is_same && first != second);
                }
            }
        }
        assert!(same > 32, "{same} warps are in several grids");
    }
}

//! Figures of warps, stored once for warps with equal figures.

use rustc_hash::FxHashMap;
use warptrace_decoder::WarpClass;

use crate::counts::median_of_counted;
use crate::figures::WarpFigures;

#[derive(Clone, Copy, Debug)]
struct FiguresRun {
    launch: u32,
    first: u32,
    warps: u32,
    at: u32,
}

/// Figures of warps, by launch and index. Warps of a launch with equal figures share an entry. Memory: 136
/// bytes for each class of a launch, and 16 for each run of its warps.
#[derive(Clone, Debug, Default)]
pub struct WarpTable {
    /// Distinct figures, each with the index of the first warp that has them.
    figures: Vec<WarpFigures>,
    counts: Vec<u64>,
    runs: Vec<FiguresRun>,
    warps: u64,
}

impl WarpTable {
    /// Returns the number of warps.
    pub const fn len(&self) -> usize {
        self.warps as usize
    }

    /// Returns true if the table has no warps.
    pub const fn is_empty(&self) -> bool {
        self.warps == 0
    }

    /// Returns the figures of each warp.
    pub fn iter(&self) -> impl Iterator<Item = WarpFigures> + Clone {
        self.runs.iter().flat_map(|run| self.of_run(run))
    }

    fn of_run(&self, run: &FiguresRun) -> impl Iterator<Item = WarpFigures> + Clone + use<> {
        let figures = self.figures[run.at as usize];
        (run.first..=run.first + (run.warps - 1)).map(move |warp| WarpFigures { warp, ..figures })
    }

    /// Returns the distinct figures, each for its first warp, and how many warps have them. Sorted by launch.
    pub fn distinct(&self) -> impl Iterator<Item = (&WarpFigures, u64)> {
        self.figures.iter().zip(self.counts.iter().copied())
    }

    /// Returns the figures of each warp of a launch.
    pub fn of_launch(&self, launch: u32) -> impl Iterator<Item = WarpFigures> + Clone {
        let from = self.runs.partition_point(|run| run.launch < launch);
        let count = self.runs[from..].partition_point(|run| run.launch == launch);
        self.runs[from..from + count].iter().flat_map(|run| self.of_run(run))
    }

    /// Returns the figures of a warp.
    pub fn get(&self, launch: u32, warp: u32) -> Option<WarpFigures> {
        let at = self.runs.partition_point(|run| (run.launch, run.first) <= (launch, warp)).checked_sub(1)?;
        let run = self.runs.get(at).filter(|run| run.launch == launch && warp - run.first < run.warps)?;
        Some(WarpFigures { warp, ..self.figures[run.at as usize] })
    }

    /// Returns the distinct figures for modification.
    pub fn each_mut(&mut self) -> impl Iterator<Item = &mut WarpFigures> {
        self.figures.iter_mut()
    }

    /// Adds the warps of a class. `figures` belong to its first warp.
    pub(crate) fn push(&mut self, class: &WarpClass, figures: WarpFigures) {
        let (at, launch) = (self.figures.len() as u32, figures.launch);
        self.figures.push(figures);
        self.counts.push(class.warps());
        self.warps += class.warps();
        self.runs.extend(class.runs().iter().map(|run| FiguresRun {
            launch,
            first: run.start,
            warps: run.end - run.start,
            at,
        }));
    }

    pub(crate) fn append(&mut self, other: Self) {
        let before = self.figures.len() as u32;
        self.figures.extend(other.figures);
        self.counts.extend(other.counts);
        self.runs.extend(other.runs.into_iter().map(|run| FiguresRun { at: run.at + before, ..run }));
        self.warps += other.warps;
    }

    /// Sorts the warps of a launch, and sets the role of each warp and the medians of its role.
    pub(crate) fn finish_launch(&mut self, role: Option<impl Fn(u32) -> Option<u8>>) {
        self.runs.sort_unstable_by_key(|run| run.first);
        if let Some(role) = role {
            self.split(role);
        }
        let mut by_role: FxHashMap<Option<u8>, [Vec<(u64, u64)>; 2]> = FxHashMap::default();
        for (figures, warps) in self.distinct() {
            let [visits, cycles] = by_role.entry(figures.role).or_default();
            visits.push((figures.counts.visits, warps));
            cycles.extend(figures.time.map(|time| (time.cycles, warps)));
        }
        let medians = by_role.into_iter().map(|(role, numbers)| (role, numbers.map(median_of_counted)));
        let medians: FxHashMap<_, _> = medians.collect();
        for figures in &mut self.figures {
            let [visits, cycles] = medians[&figures.role];
            figures.median = visits;
            if let Some(time) = &mut figures.time {
                time.median_cycles = cycles;
            }
        }
    }

    fn split(&mut self, role: impl Fn(u32) -> Option<u8>) {
        let all = std::mem::take(self);
        let mut known = FxHashMap::default();
        for run in &all.runs {
            for mut figures in all.of_run(run) {
                figures.role = role(figures.warp);
                let at = *known.entry((run.at, figures.role)).or_insert(self.figures.len() as u32);
                self.add(figures, at);
            }
        }
    }

    /// Appends a warp. Adds its figures if `at` is the next index.
    fn add(&mut self, figures: WarpFigures, at: u32) {
        let WarpFigures { launch, warp, .. } = figures;
        if at as usize == self.figures.len() {
            self.figures.push(figures);
            self.counts.push(0);
        }
        self.counts[at as usize] += 1;
        self.warps += 1;
        match self.runs.last_mut() {
            Some(last) if (last.launch, last.at, last.first + last.warps) == (launch, at, warp) => {
                last.warps += 1;
            }
            _ => self.runs.push(FiguresRun { launch, first: warp, warps: 1, at }),
        }
    }
}

/// Collects warps in order. Each warp has a separate entry.
impl FromIterator<WarpFigures> for WarpTable {
    fn from_iter<I: IntoIterator<Item = WarpFigures>>(warps: I) -> Self {
        let mut table = Self::default();
        (0..).zip(warps).for_each(|(at, figures)| table.add(figures, at));
        table
    }
}

impl PartialEq for WarpTable {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

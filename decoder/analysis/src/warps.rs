//! What warps did, kept once for all warps that did the same.

use rustc_hash::FxHashMap;
use warptrace_decoder::WarpClass;

use crate::counts::median_of_counted;
use crate::figures::WarpFigures;

/// Consecutive warps of a launch with equal figures.
#[derive(Clone, Copy, Debug)]
struct FiguresRun {
    launch: u32,
    first: u32,
    warps: u32,
    /// Where the figures are.
    at: u32,
}

/// Figures of warps, by launch and number: kept once for all warps of a launch that did the same, of which only
/// the number differs. 136 bytes for each class of a launch, and 16 for each run of its warps.
#[derive(Clone, Debug, Default)]
pub struct WarpTable {
    /// Of the first of the warps that have them.
    figures: Vec<WarpFigures>,
    /// How many warps have each of these.
    counts: Vec<u64>,
    runs: Vec<FiguresRun>,
    warps: u64,
}

impl WarpTable {
    /// How many warps there are.
    pub const fn len(&self) -> usize {
        self.warps as usize
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.warps == 0
    }

    /// The warps, one by one.
    pub fn iter(&self) -> impl Iterator<Item = WarpFigures> + Clone {
        self.runs.iter().flat_map(|run| self.of_run(run))
    }

    fn of_run(&self, run: &FiguresRun) -> impl Iterator<Item = WarpFigures> + Clone + use<> {
        let figures = self.figures[run.at as usize];
        (run.first..=run.first + (run.warps - 1)).map(move |warp| WarpFigures { warp, ..figures })
    }

    /// The figures that warps have, each as those of the first warp, and how many warps have them: by launch and
    /// first warp.
    pub fn distinct(&self) -> impl Iterator<Item = (&WarpFigures, u64)> {
        self.figures.iter().zip(self.counts.iter().copied())
    }

    /// The warps of a launch.
    pub fn of_launch(&self, launch: u32) -> impl Iterator<Item = WarpFigures> + Clone {
        let from = self.runs.partition_point(|run| run.launch < launch);
        let count = self.runs[from..].partition_point(|run| run.launch == launch);
        self.runs[from..from + count].iter().flat_map(|run| self.of_run(run))
    }

    /// A warp.
    pub fn get(&self, launch: u32, warp: u32) -> Option<WarpFigures> {
        let at = self.runs.partition_point(|run| (run.launch, run.first) <= (launch, warp)).checked_sub(1)?;
        let run = self.runs.get(at).filter(|run| run.launch == launch && warp - run.first < run.warps)?;
        Some(WarpFigures { warp, ..self.figures[run.at as usize] })
    }

    /// Changes the figures that warps have.
    pub fn each_mut(&mut self) -> impl Iterator<Item = &mut WarpFigures> {
        self.figures.iter_mut()
    }

    /// Adds the warps of a class, whose first one has these figures.
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

    /// Adds those of other warps.
    pub(crate) fn append(&mut self, other: Self) {
        let before = self.figures.len() as u32;
        self.figures.extend(other.figures);
        self.counts.extend(other.counts);
        self.runs.extend(other.runs.into_iter().map(|run| FiguresRun { at: run.at + before, ..run }));
        self.warps += other.warps;
    }

    /// Brings the warps of a launch into order, and gives each its role and the medians of those with its role.
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

    /// Splits runs and figures, so that all warps with the same have one role.
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

    /// Adds a warp after those before it: with the figures at this place, where they are put if it is the next.
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

/// Warps in order, each with figures of its own.
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

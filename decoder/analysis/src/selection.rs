//! Selection of launches and warps.

use std::ops::Range;

#[cfg(feature = "bytes")]
use borsh::{BorshDeserialize, BorshSerialize};
use warptrace_decoder::{DecodeError, LossyWarps, TraceFile, WarpFilter};
use warptrace_format::chosen::ChosenWarps;
use warptrace_format::file::LaunchInfo;
use warptrace_format::fits;

use crate::error::AnalysisError;

/// Conditions that selected launches and warps must all fulfil.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct Selection {
    /// Only launches of the kernel with this name. If no kernel has it, each `*` in it matches any characters.
    pub kernel: Option<String>,
    /// Only the launch with this number.
    pub launch: Option<u32>,
    /// Only the block with these coordinates x, y, z.
    pub block: Option<[u32; 3]>,
    /// Only the warp with this number in its block.
    pub warp: Option<u32>,
    /// Restricts the figures of single warps to visits of this location, and omits warps without such visits.
    /// Does not affect the sums of locations, lines and edges.
    pub focus: Option<u16>,
}

impl Selection {
    /// Returns true if no launch, block or warp is excluded.
    #[must_use]
    pub const fn is_everything(&self) -> bool {
        self.kernel.is_none() && self.launch.is_none() && self.block.is_none() && self.warp.is_none()
    }

    /// Returns the selected launches, and filters for their warps, which ignore [`warp`](Self::warp). Fails
    /// if the trace does not have the selected kernel, launch, block or warp.
    pub fn launches(&self, trace: &TraceFile) -> Result<Vec<(LaunchInfo, WarpFilter)>, AnalysisError> {
        if let Some(launch) = self.launch
            && trace.launch(launch).is_none()
        {
            return Err(AnalysisError::UnknownLaunch { launch, launches: trace.launches().len() });
        }
        let kernels = &trace.metadata().kernels;
        let is_name = |name: &String| kernels.iter().any(|kernel| kernel.name == *name);
        let is_exact = self.kernel.as_ref().is_some_and(is_name);
        let is_meant = |name: &str, kernel: &str| if is_exact { name == kernel } else { fits(name, kernel) };
        if let Some(name) = &self.kernel
            && !kernels.iter().any(|kernel| is_meant(name, &kernel.name))
        {
            let known: Vec<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(AnalysisError::UnknownKernel { name: name.clone(), known });
        }
        let (mut chosen, mut misfit) = (Vec::new(), None);
        for info in trace.launches() {
            let is_kernel = self.kernel.as_ref().is_none_or(|name| is_meant(name, kernel_name(trace, info)));
            if !is_kernel || self.launch.is_some_and(|launch| launch != info.number()) {
                continue;
            }
            match self.warps(info) {
                Ok(filter) => chosen.push((*info, filter)),
                Err(error) => misfit = Some(error),
            }
        }
        match (chosen.is_empty(), misfit, self.launch, &self.kernel) {
            (true, Some(error), ..) => Err(error),
            (true, None, Some(launch), Some(kernel)) => {
                Err(AnalysisError::NoLaunchOfKernel { launch, kernel: kernel.clone() })
            }
            _ => Ok(chosen),
        }
    }

    fn warps(&self, info: &LaunchInfo) -> Result<WarpFilter, AnalysisError> {
        let launch = info.number();
        if let Some(warp) = self.warp.filter(|&warp| warp >= info.warps_per_block()) {
            return Err(AnalysisError::UnknownWarp { launch, warps: info.warps_per_block(), warp });
        }
        let Some(block) = self.block else { return Ok(WarpFilter::all()) };
        let unknown = AnalysisError::UnknownBlock { launch, grid: info.grid(), block };
        WarpFilter::block(info, block).ok_or(unknown)
    }

    /// Returns true if a warp of a selected launch is selected. `warp` is its linear index.
    pub fn has_warp(&self, info: &LaunchInfo, warp: u32) -> bool {
        let in_block = |block| {
            let first = info.warp_index(block, 0);
            first.is_some_and(|first| (first..first + info.warps_per_block()).contains(&warp))
        };
        self.block.is_none_or(in_block)
            && self.warp.is_none_or(|number| warp % info.warps_per_block() == number)
    }

    /// Returns the end of a prefix of `warps` that is selected or excluded as a whole, and true if selected.
    pub(crate) fn has_first(&self, info: &LaunchInfo, warps: &Range<u32>) -> (u32, bool) {
        let of_block = self.warp_range(info);
        let end = match of_block.contains(&warps.start) {
            _ if self.warp.is_some() => warps.start.saturating_add(1),
            true => of_block.end,
            false if warps.start < of_block.start => of_block.start,
            false => warps.end,
        };
        (end.min(warps.end), self.has_warp(info, warps.start))
    }

    /// Returns the linear indices of the selected block's warps, or of all warps of the launch.
    pub fn warp_range(&self, info: &LaunchInfo) -> Range<u32> {
        let first = self.block.and_then(|block| info.warp_index(block, 0));
        first.map_or(0..info.warps(), |first| first..first + info.warps_per_block())
    }

    /// Returns the chosen warps that have the selected number in their block.
    pub fn of_chosen(&self, chosen: ChosenWarps) -> ChosenWarps {
        match self.warp {
            None => chosen,
            Some(warp) if warp < chosen.first_warp || warp - chosen.first_warp >= chosen.block_warps => {
                ChosenWarps::NONE
            }
            Some(warp) => ChosenWarps { first_warp: warp, block_warps: 1, ..chosen },
        }
    }

    /// Returns the losses of the selected warps on a track, as [`TraceFile::lossy_warps`] for all warps.
    pub fn lacking<'a>(
        &self,
        trace: &'a TraceFile,
        info: &LaunchInfo,
        track: u32,
    ) -> Result<impl Iterator<Item = Result<LossyWarps, DecodeError>> + use<'a>, DecodeError> {
        let (wide, per_block) = (self.warp_range(info), info.warps_per_block());
        let chosen = self.of_chosen(info.chosen());
        let of_selected = move |mut lossy: LossyWarps| {
            let (first, end) = (lossy.first.max(wide.start), lossy.last.saturating_add(1).min(wide.end));
            let before = if first < end { chosen.before(first, per_block) } else { return None };
            let warps = chosen.before(end, per_block).checked_sub(before).filter(|warps| *warps > 0)?;
            lossy.first = chosen.warp(before, per_block)?;
            lossy.last = chosen.warp(before + warps - 1, per_block)?;
            lossy.chosen = warps;
            Some(lossy)
        };
        let all = trace.lossy_warps(info.number(), track)?;
        Ok(all.filter_map(move |lossy| lossy.map(&of_selected).transpose()))
    }

    /// Counts the accesses that the selected warps of a launch lost. Fails as [`lacking`](Self::lacking).
    pub fn lost_accesses(&self, trace: &TraceFile, info: &LaunchInfo) -> Result<u64, DecodeError> {
        self.lacking(trace, info, trace.data_track())?
            .try_fold(0_u64, |lost, lossy| Ok(lost.saturating_add(lossy?.total().unwrap_or(0))))
    }

    /// Counts the selected warps of a launch that were chosen to be recorded.
    pub fn selected(&self, info: &LaunchInfo) -> u64 {
        let (warps, per_block) = (self.warp_range(info), info.warps_per_block());
        let chosen = self.of_chosen(info.chosen());
        u64::from(chosen.before(warps.end, per_block)) - u64::from(chosen.before(warps.start, per_block))
    }

    /// Counts the selected warps of a launch that were not chosen to be recorded, in constant time.
    pub fn unchosen(&self, info: &LaunchInfo) -> u64 {
        let (warps, per_block) = (self.warp_range(info), info.warps_per_block());
        let count = |chosen: ChosenWarps| {
            let before = |warp| u64::from(self.of_chosen(chosen).before(warp, per_block));
            before(warps.end) - before(warps.start)
        };
        count(ChosenWarps::all(info.blocks(), per_block)) - count(info.chosen())
    }
}

/// Returns the name of a launch's kernel; `?` if the metadata does not have it.
pub fn kernel_name<'a>(trace: &'a TraceFile, info: &LaunchInfo) -> &'a str {
    trace.metadata().kernels.get(info.kernel() as usize).map_or("?", |kernel| &kernel.name)
}

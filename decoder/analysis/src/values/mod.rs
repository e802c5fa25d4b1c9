//! Figures of the values that kernels name: ends, mean, histogram, and the first value that is not finite.

pub(crate) mod changes;
pub(crate) mod number;
mod tally;

use std::collections::BTreeMap;

use serde::Serialize;
use warptrace_decoder::{DecodeError, TraceFile, VectorRun, WarpAccesses};

use self::number::ValueReading;
use self::tally::Tally;
use crate::error::AnalysisError;
use crate::selection::Selection;

/// Values of one name at one line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ValueFigures {
    /// Name of the value.
    pub name: String,
    /// Type: `u32`, `i32`, `u64`, `i64`, `f32` or `f64`.
    #[serde(rename = "type")]
    pub of: &'static str,
    /// Sites. There are several if several kernels have the line, or if the line is unknown.
    pub sites: Vec<u16>,
    /// Location whose events execute the value; 0 if there are none or several.
    pub location: u16,
    /// Source file.
    pub file: String,
    /// Line; 0 if unknown.
    pub line: u32,
    /// Values, one per lane and time.
    pub values: u64,
    /// Vectors: values of several lanes at once.
    pub vectors: u64,
    /// Vectors with one value in all lanes.
    pub uniform: u64,
    /// Values that are 0.
    pub zeros: u64,
    /// Floats that are NaN.
    pub nan: u64,
    /// Floats that are infinite.
    pub infinite: u64,
    /// Lowest finite number; `None` if there are none.
    pub min: Option<String>,
    /// Highest finite number.
    pub max: Option<String>,
    /// Mean of the finite numbers, to within rounding.
    pub mean: Option<f64>,
    /// Distinct values, floats by their bits; `None` if there are more than 4,096.
    pub distinct: Option<u64>,
    /// Finite values by range, lowest first. Empty ranges are left out.
    pub histogram: Vec<Bucket>,
    /// First value that is NaN, by launch, warp, lane and number.
    pub first_nan: Option<Odd>,
    /// First value that is infinite, in the same order.
    pub first_infinite: Option<Odd>,
}

/// Number of values in a range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Bucket {
    /// Lowest integer. For floats, the lower end; the end nearer to 0 belongs to the range.
    pub from: String,
    /// Highest integer. For floats, the upper end.
    pub to: String,
    /// Number of values.
    pub count: u64,
}

/// A value that is NaN or infinite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Odd {
    /// `NaN`, `inf` or `-inf`.
    pub value: String,
    /// Number of the launch.
    pub launch: u32,
    /// Linear index of the warp in the launch.
    pub warp: u32,
    /// Coordinates of the block.
    pub block: [u32; 3],
    /// Number of the warp in the block.
    pub warp_in_block: u32,
    /// Lane of the value.
    pub lane: u32,
    /// Number among the lane's values at this site, from 0.
    pub number: u64,
}

impl Odd {
    pub(crate) const fn order(&self) -> (u32, u32, u32, u64) {
        (self.launch, self.warp, self.lane, self.number)
    }
}

/// Figures of values.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Values {
    /// Values by name and line.
    pub values: Vec<ValueFigures>,
    /// Addresses and values of the selected warps that were lost during recording.
    pub lost: u64,
    /// Addresses and values in the file that are left out, because others of the same time were lost.
    pub left_out: u64,
    /// Addresses and values in the file that belong to no group: the file is damaged.
    pub unmatched: u64,
    /// Entries in the file that no kernel writes: the file is damaged.
    pub damaged: u64,
}

impl Values {
    /// Returns true if all values are known.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.lost == 0 && self.left_out == 0 && self.unmatched == 0 && self.damaged == 0
    }
}

#[derive(Default)]
struct ValueSums {
    sites: BTreeMap<u16, Tally>,
    found: Values,
    failed: Option<DecodeError>,
}

impl ValueSums {
    fn push(&mut self, trace: &TraceFile, launch: u32, warp: &WarpAccesses) -> Result<(), DecodeError> {
        self.found.left_out += warp.left_out;
        self.found.unmatched += warp.unmatched;
        self.found.damaged += u64::from(warp.damaged);
        for site in &warp.sites {
            let Some(reading) = trace.site(site.site).and_then(ValueReading::new) else { continue };
            let tally = self.sites.entry(site.site).or_insert_with(|| Tally::new(reading));
            let odd = |lane, number, bits| {
                let id = trace.launch(launch).and_then(|info| info.stream_id(warp.warp));
                let (block, warp_in_block) = id.map_or(([0; 3], 0), |id| (id.block, id.warp_in_block));
                let value = reading.text(bits);
                Odd { value, launch, warp: warp.warp, block, warp_in_block, lane, number }
            };
            let mut before = [0; 32];
            for (group, runs) in site.each_group() {
                let vector = VectorRun { site: site.site, time: 0, group, runs };
                trace.spend_steps(tally.push(&vector, &mut before, odd))?;
            }
        }
        Ok(())
    }

    fn merge(mut self, other: Self) -> Self {
        for (site, tally) in other.sites {
            match self.sites.get_mut(&site) {
                Some(known) => known.add(tally),
                None => drop(self.sites.insert(site, tally)),
            }
        }
        let Values { left_out, unmatched, damaged, .. } = other.found;
        self.found.left_out += left_out;
        self.found.unmatched += unmatched;
        self.found.damaged += damaged;
        self.failed = self.failed.or(other.failed);
        self
    }
}

type Name<'t> = (&'t str, &'t str, u32, ValueReading);

/// Computes figures of values by name and line, without expanding equal steps of integers. Fails as
/// [`accesses`](crate::accesses()).
pub fn values(trace: &TraceFile, selection: &Selection) -> Result<Values, AnalysisError> {
    let mut all = ValueSums::default();
    for (info, filter) in selection.launches(trace)? {
        if !trace.has_accesses() {
            break;
        }
        let launch = info.number();
        let push = |sums: &mut ValueSums, warp: &WarpAccesses| {
            if sums.failed.is_none() && selection.has_warp(&info, warp.warp) {
                sums.failed = sums.push(trace, launch, warp).err();
            }
        };
        all = all.merge(trace.fold_accesses(launch, &filter, ValueSums::default, push, ValueSums::merge)?);
        if let Some(failed) = all.failed {
            return Err(failed.into());
        }
        all.found.lost += selection.lost_accesses(trace, &info)?;
    }
    let ValueSums { sites, mut found, .. } = all;
    let mut named: BTreeMap<Name<'_>, (Vec<u16>, u16, Tally)> = BTreeMap::new();
    for (number, tally) in sites {
        let Some(info) = trace.site(number) else { continue };
        let key = (&*info.name, &*info.file, info.line, tally.reading);
        match named.get_mut(&key) {
            None => drop(named.insert(key, (vec![number], info.location, tally))),
            Some((sites, location, known)) => {
                sites.push(number);
                *location = if *location == info.location { *location } else { 0 };
                known.add(tally);
            }
        }
    }
    let figures = |((name, file, line, reading), (sites, location, tally)): (Name<'_>, (_, _, Tally))| {
        let text = |bits: Option<u64>| bits.map(|bits| reading.text(bits));
        ValueFigures {
            name: name.to_owned(),
            of: reading.name(),
            sites,
            location,
            file: file.to_owned(),
            line,
            values: tally.accesses,
            vectors: tally.vectors,
            uniform: tally.uniform,
            zeros: tally.zeros,
            nan: tally.nan,
            infinite: tally.infinite,
            min: text(tally.least),
            max: text(tally.most),
            mean: tally.mean(),
            distinct: tally.different(),
            histogram: tally.histogram(),
            first_nan: tally.first_nan,
            first_infinite: tally.first_infinite,
        }
    };
    found.values = named.into_iter().map(figures).collect();
    Ok(found)
}

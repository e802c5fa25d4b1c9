//! What was in the values that kernels name: ends, mean, histogram, and the first that is no finite number.

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

/// The values of one name at one line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ValueFigures {
    /// The name.
    pub name: String,
    /// The type: `u32`, `i32`, `u64`, `i64`, `f32` or `f64`.
    #[serde(rename = "type")]
    pub of: &'static str,
    /// The sites: several, where several kernels have the line, or it is not said where they are.
    pub sites: Vec<u16>,
    /// The location whose events execute it; 0 if there is none, or several are.
    pub location: u16,
    /// File of the source.
    pub file: String,
    /// Line; 0 is unknown.
    pub line: u32,
    /// How many values there were: of each lane each time.
    pub values: u64,
    /// Times that lanes came together.
    pub vectors: u64,
    /// Of these, those whose lanes all had one value.
    pub uniform: u64,
    /// Values that were 0.
    pub zeros: u64,
    /// Floats that were NaN.
    pub nan: u64,
    /// Floats that were infinite.
    pub infinite: u64,
    /// The lowest number, of those that are finite; `None` if none was.
    pub min: Option<String>,
    /// The highest one.
    pub max: Option<String>,
    /// Their mean, to within rounding.
    pub mean: Option<f64>,
    /// How many different ones there were, floats by their bits; `None` if more than 4,096.
    pub distinct: Option<u64>,
    /// How many values were in which range, of those that are finite; lowest first, empty ranges left out.
    pub histogram: Vec<Bucket>,
    /// The first that was NaN, in the order of launches, warps and lanes, and of a lane its first.
    pub first_nan: Option<Odd>,
    /// The first that was infinite, likewise.
    pub first_infinite: Option<Odd>,
}

/// How many values were in a range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Bucket {
    /// Its lowest integer. Of floats, its end that is lower; the end that is nearer to 0 belongs to it.
    pub from: String,
    /// Its highest integer. Of floats, its other end.
    pub to: String,
    /// How many.
    pub count: u64,
}

/// A value that is NaN or infinite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Odd {
    /// What it is: `NaN`, `inf` or `-inf`.
    pub value: String,
    /// The launch.
    pub launch: u32,
    /// Linear index of the warp in the launch.
    pub warp: u32,
    /// The block.
    pub block: [u32; 3],
    /// The warp's number in the block.
    pub warp_in_block: u32,
    /// The lane.
    pub lane: u32,
    /// Which of the lane's values at this site it is, from 0.
    pub number: u64,
}

impl Odd {
    pub(crate) const fn order(&self) -> (u32, u32, u32, u64) {
        (self.launch, self.warp, self.lane, self.number)
    }
}

/// What was in values.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Values {
    /// By name and line.
    pub values: Vec<ValueFigures>,
    /// Addresses and values that were lost when they were recorded, of the warps that were looked at.
    pub lost: u64,
    /// Addresses and values in the file that are left out, since others of their time were lost.
    pub left_out: u64,
    /// Those in the file that belong to nothing: the file is damaged.
    pub unmatched: u64,
    /// Entries of the file that no kernel writes: the file is damaged.
    pub damaged: u64,
}

impl Values {
    /// Whether all values are known.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.lost == 0 && self.left_out == 0 && self.unmatched == 0 && self.damaged == 0
    }
}

#[derive(Default)]
struct ValueSums {
    sites: BTreeMap<u16, Tally>,
    found: Values,
    /// Why no more is counted.
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

/// What a value is known by: its name, file and line, and how its bits are read.
type Name<'t> = (&'t str, &'t str, u32, ValueReading);

/// Computes what was in the values that a trace has, by name and line. Runs of equal steps are added up as
/// they are.
///
/// # Errors
/// Something was asked for that the trace does not have; it cannot be read, or asks for more work than its
/// length lets expect.
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

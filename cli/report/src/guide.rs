//! Data shared by all sections: link, kernels and colour of each location.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use askama::Template;
use warptrace_analysis::words::{self, Names};
use warptrace_analysis::{Analysis, LineFigures, LocationFigures, OrderItems, WarpFigures, kernel_name};
use warptrace_decoder::TraceFile;

use crate::limits::Limits;

/// Number of locations with a separate colour.
pub(crate) const COLOURS: usize = 10;
/// Number of causes that get a colour before all other locations.
const CAUSES: usize = 5;

pub(crate) struct Guide<'a> {
    pub(crate) trace: &'a TraceFile,
    pub(crate) analysis: &'a Analysis,
    pub(crate) warps: Vec<WarpFigures>,
    pub(crate) names: &'a Names,
    pub(crate) limits: Limits,
    ranks: BTreeMap<u16, usize>,
    /// Kernels that visited a location, by their index in the analysis.
    kernels: BTreeMap<u16, Vec<usize>>,
    colours: BTreeMap<u16, usize>,
}

/// A location, with a link to its line if the page has it.
#[derive(Clone, Debug, Template)]
#[template(
    ext = "html",
    source = r##"{% if let Some(rank) = rank %}<a href="#hot-{{ rank }}"><code>{{ name }}</code></a>{% else %}<code>{{ name }}</code>{% endif %}{% if !line.is_empty() %} <small>{{ line }}</small>{% endif %}"##
)]
pub(crate) struct LocationLink {
    pub(crate) name: String,
    pub(crate) line: String,
    pub(crate) rank: Option<usize>,
}

/// Returns the lines in the order of `lines`: most warp-cycles first, or most caused idle slots without
/// times.
pub(crate) fn by_heat(analysis: &Analysis) -> Vec<&LineFigures> {
    if analysis.time.is_some() { words::hottest(analysis) } else { words::causing(analysis) }
}

impl<'a> Guide<'a> {
    pub(crate) fn new(
        trace: &'a TraceFile,
        analysis: &'a Analysis,
        names: &'a Names,
        limits: Limits,
    ) -> Self {
        let shown = (1..).zip(by_heat(analysis)).take(limits.lines);
        let ranks = shown.flat_map(|(rank, line)| line.locations.iter().map(move |&id| (id, rank))).collect();
        let mut kernels: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for (at, kernel) in analysis.kernels.iter().enumerate() {
            kernel.locations.keys().for_each(|&id| kernels.entry(id).or_default().push(at));
        }
        let mut order: Vec<u16> =
            analysis.causes.iter().take(CAUSES).map(|cause| cause.point.location).collect();
        let mut others: Vec<_> = analysis.locations.iter().collect();
        let cycles = |location: &LocationFigures| location.time.map(|time| time.warp_cycles);
        others.order_by_key(|location| Reverse((cycles(location), location.counts.visits)));
        let others = others.iter().map(|location| location.point.location).take(CAUSES + COLOURS);
        others.for_each(|id| {
            if !order.contains(&id) {
                order.push(id);
            }
        });
        let colours = order.into_iter().take(COLOURS).zip(0..).collect();
        Self {
            trace,
            analysis,
            warps: analysis.warps.iter().collect(),
            names,
            limits,
            ranks,
            kernels,
            colours,
        }
    }

    /// Orders launches in rounds: the first launch of each kernel, then the second of each, and so on.
    pub(crate) fn by_turns<T>(&self, launches: Vec<T>, number: impl Fn(&T) -> u32) -> Vec<T> {
        let mut turns: BTreeMap<&str, usize> = BTreeMap::new();
        let mut order: Vec<(usize, T)> = launches
            .into_iter()
            .map(|launch| {
                let info = self.trace.launch(number(&launch));
                let turn = turns.entry(info.map_or("?", |info| kernel_name(self.trace, info))).or_default();
                *turn += 1;
                (*turn, launch)
            })
            .collect();
        order.order_by_key(|(turn, _)| *turn);
        order.into_iter().map(|(_, launch)| launch).collect()
    }

    /// Returns a location with a link; `None` gets the name `outside`.
    pub(crate) fn place(&self, id: Option<u16>, outside: &str) -> LocationLink {
        let Some(id) = id else {
            return LocationLink { name: outside.to_owned(), line: String::new(), rank: None };
        };
        let point = self.analysis.location(id).map(|location| &location.point);
        let line = point.map(|point| self.names.line_of(point)).filter(|line| line != "-");
        let said = [line.as_deref().unwrap_or_default(), self.names.called_at(id)];
        let line = said.into_iter().filter(|said| !said.is_empty()).collect::<Vec<_>>().join(", ");
        LocationLink { name: self.names.name(id), line, rank: self.rank(id) }
    }

    pub(crate) fn rank(&self, id: u16) -> Option<usize> {
        self.ranks.get(&id).copied()
    }

    /// Returns the indices of the kernels that visited any of these locations, separated by blanks.
    pub(crate) fn kernels(&self, ids: &[u16]) -> String {
        let mut found: Vec<usize> =
            ids.iter().filter_map(|id| self.kernels.get(id)).flatten().copied().collect();
        found.sort_unstable();
        found.dedup();
        found.iter().map(usize::to_string).collect::<Vec<_>>().join(" ")
    }

    /// Returns the colour number of a location; [`COLOURS`] for all locations without a separate colour.
    pub(crate) fn colour(&self, id: u16) -> usize {
        self.colours.get(&id).copied().unwrap_or(COLOURS)
    }
}

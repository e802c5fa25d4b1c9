//! The first picture of the page: slots of each kernel, active or idle by cause.

use std::cmp::Reverse;

use warptrace_analysis::words::{self, about, count, percent};
use warptrace_analysis::{Cause, Counts, KernelFigures, OrderItems, Point, share};

use crate::guide::{COLOURS, Guide, LocationLink};
use crate::page::cut;

const CAUSES: usize = 5;

#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) bars: Vec<Bar>,
    pub(crate) more_kernels: usize,
    pub(crate) longest: String,
    pub(crate) causes: Vec<Charged>,
    pub(crate) more_causes: usize,
}

#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) number: usize,
    pub(crate) kernel: String,
    pub(crate) idle: String,
    pub(crate) slots: String,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) label: String,
}

#[derive(Debug)]
pub(crate) struct Piece {
    /// CSS class: `active`, or a colour.
    pub(crate) class: String,
    pub(crate) width: String,
    pub(crate) label: String,
}

#[derive(Debug)]
pub(crate) struct Charged {
    pub(crate) colour: usize,
    pub(crate) place: LocationLink,
    pub(crate) idle: String,
    pub(crate) part: String,
    pub(crate) said: Vec<String>,
    /// Location with the most of these idle slots other than the cause, and its share of them.
    pub(crate) shows: Option<(LocationLink, String)>,
    pub(crate) kernels: String,
}

/// Draws the kernels with the most slots.
pub(crate) fn picture(guide: &Guide<'_>) -> Picture {
    let analysis = guide.analysis;
    let mut kernels: Vec<(usize, &KernelFigures)> = analysis.kernels.iter().enumerate().collect();
    kernels.retain(|(_, kernel)| kernel.counts.visits > 0);
    kernels.order_by_key(|(_, kernel)| Reverse(kernel.counts.slots));
    let longest = kernels.first().map_or(0, |(_, kernel)| kernel.counts.slots);
    let most = guide.limits.kernels;
    Picture {
        bars: kernels
            .iter()
            .take(most)
            .map(|(number, kernel)| bar(guide, *number, kernel, longest))
            .collect(),
        more_kernels: kernels.len().saturating_sub(most),
        longest: count(longest),
        causes: described(guide).map(|cause| charged(guide, cause)).collect(),
        more_causes: analysis.causes.len().saturating_sub(CAUSES),
    }
}

/// Returns the causes that are described. Each has a separate colour.
fn described<'a>(guide: &Guide<'a>) -> impl Iterator<Item = &'a Cause> {
    guide.analysis.causes.iter().take(CAUSES.min(guide.limits.changes))
}

fn bar(guide: &Guide<'_>, number: usize, kernel: &KernelFigures, longest: u64) -> Bar {
    let Counts { idle, slots, .. } = kernel.counts;
    // Causes that are not described form one segment, the last.
    let mut sums = vec![(0_u64, Vec::new()); COLOURS + 1];
    for (&cause, &charged) in &kernel.causes {
        let is_described = described(guide).any(|other| other.point.location == cause);
        let (sum, names) = &mut sums[if is_described { guide.colour(cause) } else { COLOURS }];
        *sum = sum.saturating_add(charged);
        names.push(guide.names.full(cause));
    }
    let piece = |class: String, number: u64, what: &str| Piece {
        class,
        width: format!("{:.3}%", 100.0 * share(number, longest)),
        label: format!("{what}: {} slots, {}", count(number), about(number, slots)),
    };
    let mut pieces = vec![piece("active".to_owned(), slots.saturating_sub(idle), "active")];
    for (colour, (sum, names)) in sums.iter().enumerate().filter(|(_, (sum, _))| *sum > 0) {
        let what = match names.as_slice() {
            [name] => format!("idle because of divergence at {name}"),
            names => format!("idle of {} other causes", count(names.len() as u64)),
        };
        pieces.push(piece(format!("c{colour}"), *sum, &what));
    }
    let name = cut(&kernel.kernel, guide.limits.text);
    let said: Vec<&str> = pieces.iter().map(|piece| piece.label.as_str()).collect();
    Bar {
        number,
        label: format!("{name}: {}", said.join("; ")),
        kernel: name,
        idle: about(idle, slots),
        slots: count(slots),
        pieces,
    }
}

fn charged(guide: &Guide<'_>, cause: &Cause) -> Charged {
    let id = cause.point.location;
    let place = guide.place(Some(cause.decision()), "");
    let shows = cause.places.iter().find(|place| place.location != id);
    let shows = shows.map(|at| (guide.place(Some(at.location), ""), about(at.idle, cause.idle)));
    // Lanes that diverge before their first event have no location.
    let kernels = if id == Point::BEGIN { String::new() } else { guide.kernels(&[id]) };
    Charged {
        colour: guide.colour(id),
        place,
        idle: count(cause.idle),
        part: percent(cause.idle, guide.analysis.counts.idle),
        said: guide
            .analysis
            .cause_line(vec![cause])
            .map_or_else(Vec::new, |line| words::apart(guide.analysis, guide.names, &line)),
        shows,
        kernels,
    }
}

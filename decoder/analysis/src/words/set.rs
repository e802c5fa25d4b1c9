//! Sentences about several traces.

use super::{SAID_WIDTH, count, cut, holds, many, missing, nanoseconds, ratio};
use crate::counts::{Weight, share};
use crate::figures::Analysis;
use crate::set::{Figure, FileFigures, OutlierFile, OutlierRow, SetAnalysis};

const NAMED: usize = 4;

fn named(said: &[String]) -> String {
    let more = said.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("and {} more", count(more as u64)));
    let said = said.iter().take(NAMED).cloned().chain(more);
    said.collect::<Vec<_>>().join("; ")
}

/// Describes contents and losses of several traces: the first lines of each view.
pub fn set_losses(set: &SetAnalysis, sum: &Analysis) -> Vec<String> {
    let number = set.looked_at();
    let lacks = |file: &FileFigures| {
        let text = missing(&file.losses)?;
        let said = ["INCOMPLETE trace: ", "NOT ALL LAUNCHES: "];
        let text = said.iter().find_map(|said| text.strip_prefix(said)).unwrap_or(&text);
        Some(format!("{}: {text}", file.label()))
    };
    let [lacking, partial] = [false, true].map(|is_whole| -> Vec<String> {
        set.files().iter().filter(|file| file.losses.is_whole() == is_whole).filter_map(lacks).collect()
    });
    let mut first = match lacking.len() {
        0 if partial.is_empty() => format!("{}, all whole", many(number as u64, "trace")),
        0 => many(number as u64, "trace"),
        _ => format!("INCOMPLETE: {} of {} traces: {}", lacking.len(), count(number as u64), named(&lacking)),
    };
    if !partial.is_empty() {
        first +=
            &format!("; NOT ALL LAUNCHES: in {} of them: {}", count(partial.len() as u64), named(&partial));
    }
    let unchosen = sum.losses.unchosen_warps;
    if unchosen > 0 {
        first += &format!("; {} not chosen to be recorded", many(unchosen, "warp"));
    }
    if let Some(assumed) = sum.losses.assumed {
        first += &format!("; {assumed}");
    }
    first += &format!(": {}", holds(sum));
    if sum.counts.visits > 0 {
        first += match sum.weight {
            Weight::Instructions => "; slots are of instructions",
            Weight::Events => "; slots are of lanes, each event counted as one",
        };
    }
    let mut said = vec![first];
    let left_out: Vec<String> = set
        .files()
        .iter()
        .filter_map(|file| Some(format!("{}: {}", file.label(), file.left_out.as_ref()?)))
        .collect();
    if !left_out.is_empty() {
        said.push(format!("{} left out: {}", many(left_out.len() as u64, "trace"), named(&left_out)));
    }
    let apart = set.separate_locations();
    if apart > 0 {
        said.push(format!(
            "{} of {} are not in all traces: another function, position or version of the source",
            count(apart),
            many(set.table().locations().count() as u64, "location")
        ));
    }
    said
}

/// Describes the trace that differs most; for two traces, the kernels with the greatest differences.
pub fn outlier_file(set: &SetAnalysis) -> String {
    let label = |file: u32| set.files().get(file as usize).map_or_else(|| "?".to_owned(), FileFigures::label);
    let Some(OutlierFile { file, kernel, line }) = set.outlier() else {
        return format!("no kernel differs between {}", many(set.looked_at() as u64, "trace"));
    };
    if set.looked_at() == 2 {
        let apart = set.kernels_apart().into_iter().take(2).map(|(kernel, figure, spread)| {
            let other = match spread.least {
                0 => "of which the other has none".to_owned(),
                least => format!("{} times the other's", ratio(share(spread.most, least))),
            };
            let [name, kernel] = [label(spread.outlier_file), cut(kernel, SAID_WIDTH).into_owned()];
            format!("{name} has {} in {kernel}, {other}", said(figure, spread.most))
        });
        return apart.collect::<Vec<_>>().join("; ");
    }
    let line =
        line.map(|line| format!("; most at {}:{} ({})", last_part(&line.name), line.line, of_median(&line)));
    format!(
        "{} is farthest from the median: {}: {}, {}{}",
        label(file),
        cut(&kernel.name, SAID_WIDTH),
        said(kernel.figure, kernel.number),
        of_median(&kernel),
        line.unwrap_or_default()
    )
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn said(figure: Figure, number: u64) -> String {
    match figure {
        Figure::Nanoseconds => format!("{} of launches", nanoseconds(number)),
        figure => format!("{} {}", count(number), figure.words()),
    }
}

fn of_median(row: &OutlierRow) -> String {
    match row.median {
        0 => "where the median has none".to_owned(),
        median => format!("{} times the median", ratio(share(row.number, median))),
    }
}

//! `warptrace values`.

use serde_json::json;
use warptrace_analysis::words::{bars, value_finding};
use warptrace_analysis::{ValueFigures, Values, values};
use warptrace_format::on_one_line;

use super::rows::{Listed, Order};
use super::words::percent;
use super::{Answer, TextTable, print_rows};
use crate::arguments::Rows;
use crate::opened::Opened;
use crate::output::{count, say};

impl Listed for ValueFigures {
    const NAME: &'static str = "values";
    const ORDERS: &'static [Order<Self>] = &[
        Order::compared("nan", "Numbers that are NaN, then those that are infinite", |_, a, b| {
            (b.nan, b.infinite).cmp(&(a.nan, a.infinite))
        }),
        Order::most("values", "How many values", |value| value.values),
        // Values with too many distinct numbers to count come first.
        Order::most("distinct", "How many different ones", |value| value.distinct.unwrap_or(u64::MAX)),
        Order::by_source(|_, a, b| (&a.file, a.line, &a.name).cmp(&(&b.file, b.line, &b.name))),
    ];

    fn is_at(&self, location: u16) -> bool {
        self.location == location
    }
}

pub(crate) fn run(command: &Rows<ValueFigures>) -> anyhow::Result<()> {
    let answer = Answer::of_one(command)?;
    let Opened { trace, state } = answer.opened()?;
    let found = values(trace, &command.page.selected.selection())?;
    let finding = value_finding(&found, &answer.names);
    let (rows, more) = command.shown(&answer, &found.values);
    if command.page.json {
        let Values { lost, left_out, unmatched, damaged, .. } = &found;
        let figures = json!({
            "finding": finding,
            "lost_accesses": lost,
            "left_out_accesses": left_out,
            "unmatched_accesses": unmatched,
            "damaged_entries": damaged,
        });
        return answer.json_rows(figures, ValueFigures::NAME, rows.into_iter().map(|row| json!(row)));
    }
    if found.values.is_empty() && found.is_whole() {
        answer.headline()?;
        return Ok(say!(
            "no values: none were recorded in what was looked at; name them in the source, and record with `--accesses values`"
        )?);
    }
    let missing = (!found.is_whole()).then(|| lacks(&found));
    answer.with_headline(
        state.is_whole && state.not_traced.is_none() && found.is_whole(),
        missing,
        [finding],
    )?;
    print_rows(&value_table(&answer, &rows), more)?;
    if rows.iter().any(|value| value.histogram.len() > 1) {
        say!(
            "\nSizes: how many values are in which power of two, from the lowest to the highest; `--json` has the numbers."
        )?;
    }
    if rows.iter().any(|value| value.nan + value.infinite > 0) {
        say!("Least, most and mean are of the numbers that are finite.")?;
    }
    Ok(())
}

/// Describes the missing values. Of each lane, the first ones are known.
pub(super) fn lacks(found: &Values) -> String {
    let parts = [
        (found.lost, "lost"),
        (found.left_out, "left out, since others of their time were lost"),
        (found.unmatched, "that belong to nothing"),
        (found.damaged, "entries damaged"),
    ];
    let parts = parts.iter().filter(|(accesses, _)| *accesses > 0);
    let parts: Vec<String> = parts.map(|(accesses, what)| format!("{} {what}", count(*accesses))).collect();
    format!("addresses and values: {}; figures are of the beginnings that are known", parts.join(", "))
}

fn value_table(answer: &Answer, values: &[&ValueFigures]) -> String {
    let odd =
        |value: &ValueFigures, number| if value.of.starts_with('f') { count(number) } else { "-".to_owned() };
    let end = |end: &Option<String>| end.clone().unwrap_or_else(|| "-".to_owned());
    TextTable::<&ValueFigures>::new()
        .left("line", |value| answer.names.line(&value.file, value.line))
        .left("value", |value| on_one_line(&value.name))
        .left("type", |value| value.of.to_owned())
        .right("values", |value| count(value.values))
        .right("least", move |value| end(&value.min))
        .right("most", move |value| end(&value.max))
        .right("mean", |value| value.mean.map_or_else(|| "-".to_owned(), mean))
        .right("distinct", |value| value.distinct.map_or_else(|| "over 4,096".to_owned(), count))
        .right("zeros", |value| percent(value.zeros, value.values))
        .right("uniform", |value| percent(value.uniform, value.vectors))
        .right("NaN", move |value| odd(value, value.nan))
        .right("infinite", move |value| odd(value, value.infinite))
        .left("sizes", |value| {
            let counts: Vec<u64> = value.histogram.iter().map(|bucket| bucket.count).collect();
            if counts.len() > MAX_BARS { "-".to_owned() } else { bars(&counts) }
        })
        .text(values)
}

pub(super) fn mean(number: f64) -> String {
    match number.abs() {
        0.0 | 0.001..1e9 => format!("{number:.4}"),
        _ => format!("{number:.3e}"),
    }
}

/// Maximum number of histogram ranges that a row draws.
const MAX_BARS: usize = 24;

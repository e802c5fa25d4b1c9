//! Sentences about values.

use super::{Names, count};
use crate::values::{Odd, ValueFigures, Values};
use warptrace_format::on_one_line;

/// Describes in one sentence the first NaN or infinite value, otherwise a value that is always the same.
#[must_use]
pub fn value_finding(found: &Values, names: &Names) -> String {
    let of = |value: &ValueFigures| match names.line(&value.file, value.line).as_str() {
        "-" => format!("`{}`", on_one_line(&value.name)),
        place => format!("`{}` at {place}", on_one_line(&value.name)),
    };
    let odd = |first: fn(&ValueFigures) -> Option<&Odd>| {
        let all = found.values.iter().filter_map(|value| Some((value, first(value)?)));
        all.min_by_key(|(_, odd)| odd.order())
    };
    let nan = odd(|value| value.first_nan.as_ref());
    if let Some((value, odd)) = nan.or_else(|| odd(|value| value.first_infinite.as_ref())) {
        let Odd { launch, block: [x, y, z], warp_in_block, lane, number, .. } = odd;
        let others = match (value.nan, value.infinite) {
            (0, infinite) => format!("{} of {} are infinite", count(infinite), count(value.values)),
            (nan, 0) => format!("{} of {} are NaN", count(nan), count(value.values)),
            (nan, infinite) => {
                format!("{} of {} are NaN, {} infinite", count(nan), count(value.values), count(infinite))
            }
        };
        return format!(
            "{} is {} first in launch {launch}, block {x},{y},{z}, warp {warp_in_block}, lane {lane}, as the lane's value {}; {others}",
            of(value),
            odd.value,
            count(number + 1)
        );
    }
    let constant = |value: &&ValueFigures| value.distinct == Some(1) && value.values > 1;
    match (found.values.iter().find(constant), &found.values[..]) {
        (_, []) => "no values in what was looked at".to_owned(),
        (Some(value), _) => {
            let number = value.min.as_deref().unwrap_or("-");
            format!("{} is {number} each of the {} times", of(value), count(value.values))
        }
        (None, all) if all.iter().any(|value| value.of.starts_with('f')) => {
            "no float is NaN or infinite, and no value is always the same".to_owned()
        }
        _ => "no value is always the same".to_owned(),
    }
}

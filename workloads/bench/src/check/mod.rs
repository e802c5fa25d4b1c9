//! `check`: checks results, events and lanes on this device.

mod lanes;
mod recording;
mod report;

use std::time::{Duration, Instant};

use self::report::Report;
use crate::machine::Machine;
use crate::programs::{self, Selection};
use crate::runs::Bench;
use crate::{arguments, codecs, files, progress};

/// Runs all checks. Returns true if all passed.
pub(crate) fn run(arguments: &arguments::Check) -> anyhow::Result<bool> {
    let target = &arguments.target;
    let selection = Selection::new(target);
    let cases = programs::measured(&selection)?;
    let twins = programs::twins(&selection);
    let codecs = codecs::chosen(&target.codecs)?;
    let mut bench = Bench::open(target)?;
    let machine = Machine::new(&*bench.device);
    println!("device     {} (driver {})", machine.name, machine.driver);

    let table = arguments.out.as_ref().map(|folder| folder.join("check.md"));
    if let Some(folder) = &arguments.out {
        files::make_folder(folder)?;
    }
    // Writes after each case, so that an interrupted run leaves its results.
    let write = |report: &Report| match &table {
        Some(path) => files::write(path, report.markdown(&machine)),
        None => Ok(()),
    };
    let time_limit = arguments.time_limit.map(Duration::from_secs);
    let mut report = Report::new(time_limit.map(|limit| Instant::now() + limit));
    let bar = progress::steps((cases.len() + twins.len()) as u64);
    for case in &cases {
        bar.set_message(case.name());
        if let Err(error) = recording::check(&mut bench, case, &codecs, &mut report) {
            report.add(case, "runs", Err(format!("{error:#}")));
        }
        write(&report)?;
        bar.inc(1);
    }
    for case in &twins {
        bar.set_message(format!("{} on two devices", case.name()));
        if let Err(error) = lanes::check_twins(&mut bench, case, &codecs, &mut report) {
            report.add(case, "runs on two devices", Err(format!("{error:#}")));
        }
        write(&report)?;
        bar.inc(1);
    }
    bar.finish_and_clear();

    println!("\n{}", report.summary());
    if let Some(path) = &table {
        println!("table      {}", path.display());
    }
    Ok(report.all_passed())
}

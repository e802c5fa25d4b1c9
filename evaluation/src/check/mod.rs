//! `check`: on this device, is every result right, every event there, and every lane where it should be?

mod lanes;
mod recording;
mod report;

use std::fs;

use anyhow::Context;

use self::report::Report;
use crate::arguments;
use crate::machine::Machine;
use crate::progress;
use crate::record::Bench;
use crate::subjects::{self, Selection};

/// Runs all checks; answers whether all passed.
pub(crate) fn run(arguments: &arguments::Check) -> anyhow::Result<bool> {
    let target = &arguments.target;
    let selection = Selection::of(target);
    let cases = subjects::cases(&selection)?;
    let twins = subjects::twins(&selection);
    let mut bench = Bench::open(target)?;
    let machine = Machine::of(&*bench.device);
    println!("device     {} (driver {})", machine.name, machine.driver);

    let mut report = Report::new();
    let bar = progress::steps((cases.len() + twins.len()) as u64);
    for case in &cases {
        bar.set_message(case.name());
        if let Err(error) = recording::check(&mut bench, case, &mut report) {
            report.add(case, "runs", Err(format!("{error:#}")));
        }
        bar.inc(1);
    }
    for case in &twins {
        bar.set_message(format!("{} on two devices", case.name()));
        if let Err(error) = lanes::check_twins(&mut bench, case, &mut report) {
            report.add(case, "runs on two devices", Err(format!("{error:#}")));
        }
        bar.inc(1);
    }
    bar.finish_and_clear();

    println!("\n{}", report.summary());
    if let Some(folder) = &arguments.out {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let path = folder.join("check.md");
        fs::write(&path, report.markdown(&machine))
            .with_context(|| format!("cannot write {}", path.display()))?;
        println!("table      {}", path.display());
    }
    Ok(report.all_passed())
}

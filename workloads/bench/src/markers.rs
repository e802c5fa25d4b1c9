//! What markers cost a kernel that nobody traces: its time beside the same kernels compiled without them.

use anyhow::Context;
use warptrace_host::{CudaDevice, Device, Untraced};
use warptrace_workloads::PTX;

use crate::arguments::Markers;
use crate::machine::Machine;
use crate::programs::{self, Selection};
use crate::subject::Subject;
use crate::table::{Table, digits};

/// Kernel time of one run, in milliseconds.
fn time(device: &mut dyn Device, subject: &dyn Subject) -> anyhow::Result<f64> {
    let run = subject.run(&mut Untraced(device)).context("an untraced run failed")?;
    Ok(run.kernel.as_secs_f64() * 1e3)
}

/// The median, and the largest less the smallest over it.
fn median_and_spread(samples: &mut [f64]) -> (f64, f64) {
    samples.sort_by(f64::total_cmp);
    let median = samples[samples.len() / 2];
    (median, (samples[samples.len() - 1] - samples[0]) / median)
}

/// Times each program with and without markers in turns, and writes `markers.md`, after each program anew.
pub(crate) fn run(arguments: &Markers) -> anyhow::Result<()> {
    let path = &arguments.without;
    let without = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    anyhow::ensure!(
        !without.contains("// warptrace."),
        "{} holds markers: compile the kernels with the feature `no-markers` of warptrace-device",
        path.display()
    );
    let open = |ptx| CudaDevice::open(0, ptx).context("this needs a GPU");
    let (mut with, mut without) = (open(PTX)?, open(without.leak())?);
    let machine = Machine::of(&with);
    let headings = ["program", "input", "without, ms", "with, ms", "with over without", "spread without"];
    let mut table = Table::new(2, headings);
    let selection = Selection {
        inputs: arguments.inputs.as_deref(),
        programs: &arguments.programs,
        ..Selection::default()
    };
    for case in programs::measured(&selection)? {
        let subject = case.make()?;
        let mut samples: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
        // One more, which warms up.
        for turn in 0..=arguments.runs {
            for (device, samples) in [&mut with, &mut without].into_iter().zip(&mut samples) {
                let time = time(device, &*subject)?;
                if turn > 0 {
                    samples.push(time);
                }
            }
        }
        let [(with, _), (without, spread)] = samples.each_mut().map(|samples| median_and_spread(samples));
        println!("{}: {with:.4} ms with markers, {without:.4} ms without", case.name());
        let numbers = [without, with, with / without].map(digits);
        let spread = format!("{:.1}%", 100.0 * spread);
        table.row([case.program.to_owned(), case.input.clone()].into_iter().chain(numbers).chain([spread]));
        let text = format!(
            "# What markers cost an untraced kernel\n\n{} runs each, in turns, medians of kernel times; {}, driver {}, commit {}.\n\n{}",
            arguments.runs,
            machine.name,
            machine.driver,
            arguments.commit,
            table.markdown()
        );
        let path = arguments.out.join("markers.md");
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

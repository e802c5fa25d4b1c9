//! Marks PTX of another compiler, prints the points, and writes the marked text. Prints the times of marking
//! and splicing to standard error.

use std::error::Error;
use std::time::Instant;

use warptrace_abi::recording::Spaces;
use warptrace_ptx::points::{PointOptions, mark};
use warptrace_ptx::splice::{Options, Recording, splice};

fn main() -> Result<(), Box<dyn Error>> {
    let usage =
        "usage: mark KERNELS.ptx [blocks|branches|loops|functions|waits] [OUT.ptx] [all|global,shared,local]";
    let mut arguments = std::env::args().skip(1);
    let input = arguments.next().ok_or(usage)?;
    let points = arguments.next().map(|word| word.parse()).transpose()?.unwrap_or_default();
    let output = arguments.next();
    let accesses: Spaces = arguments.next().map(|word| word.parse()).transpose()?.unwrap_or_default();
    let text = std::fs::read_to_string(&input)?;
    let started = Instant::now();
    let marked = mark(&text, &PointOptions { points, accesses, ..PointOptions::default() })?;
    let marking = started.elapsed();
    let recording = Some(Recording { data: accesses, ..Recording::default() });
    let started = Instant::now();
    let spliced = splice(&marked.text, &Options { recording, ..Options::default() })?;
    eprintln!(
        "marked {} kernels in {marking:.1?}, spliced in {:.1?}",
        spliced.kernels.len(),
        started.elapsed()
    );
    for point in &marked.points {
        let is_counted = spliced.kernels.iter().any(|kernel| kernel.counted.contains(&point.id));
        let counted = match point.counted {
            true if is_counted => ", counted",
            true => ", not proven",
            false => "",
        };
        let kind = format!("{}{counted}", point.kind);
        print!(
            "{:>5}  in {:>5}  {kind:<20}  {}, block {}, line {}:{}",
            point.id, point.parent, point.function, point.block, point.ptx_line, point.ptx_column
        );
        if let Some(place) = &point.source {
            print!("  {}:{}:{}", place.file, place.line, place.column);
        }
        for call in point.inlined_at.iter() {
            let place = &call.place;
            print!("  in {}, called at {}:{}:{}", call.function, place.file, place.line, place.column);
        }
        println!();
    }
    for implied in &marked.implied {
        println!("behind each {}: {:?}", implied.after, implied.points);
    }
    for kernel in &marked.kernels {
        let buffer = kernel.parameters.last().map_or(0, |last| last.offset + last.size);
        println!("{}: {} parameters in {buffer} bytes", kernel.name, kernel.parameters.len());
    }
    for site in &marked.sites {
        let predicate = if site.is_predicated { ", under a predicate" } else { "" };
        println!(
            "site {:>5}  at {:>5}  {:?} {}, {} bytes{predicate}  {}, line {}:{}",
            site.id,
            site.location,
            site.kind,
            site.space.name(),
            site.bytes,
            site.function,
            site.ptx_line,
            site.ptx_column
        );
    }
    for (function, reason) in &marked.skipped {
        println!("{function} is not traced: {reason}");
    }
    for (function, reason) in &marked.unrecorded {
        println!("{function}: {reason}");
    }
    if let Some(output) = output {
        std::fs::write(output, marked.text)?;
    }
    Ok(())
}

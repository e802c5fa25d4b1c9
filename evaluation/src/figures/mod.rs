//! `figures`: the thesis's figures 5 to 10 from a table that `bench` wrote, as SVG and PNG.

mod chart;
mod content;
mod draw;
mod paint;

use std::fs;

use anyhow::Context;
use plotters::prelude::{BitMapBackend, IntoDrawingArea, SVGBackend};

use crate::arguments;
use crate::bench::{Measurements, read};

/// Draws all figures.
pub(crate) fn run(arguments: &arguments::Figures) -> anyhow::Result<()> {
    let measurements = Measurements::new(read(&arguments.csv)?);
    let out = &arguments.out;
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    draw::register_font()?;
    for (name, chart) in content::charts(&measurements) {
        let size = draw::size(&chart);
        let failed = || format!("cannot draw {name}");
        let svg = out.join(format!("{name}.svg"));
        draw::draw(&SVGBackend::new(&svg, size).into_drawing_area(), &chart).with_context(failed)?;
        let png = out.join(format!("{name}.png"));
        draw::draw(&BitMapBackend::new(&png, size).into_drawing_area(), &chart).with_context(failed)?;
        println!("{} and {}", svg.display(), png.display());
    }
    Ok(())
}

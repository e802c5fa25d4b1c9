//! `figures`: the thesis's figures 5 to 10, and overviews by program, from a table that `bench` wrote, as SVG
//! and PNG.

mod chart;
mod content;
mod draw;
mod paint;

use std::fs;

use anyhow::Context;
use plotters::prelude::{BitMapBackend, IntoDrawingArea, SVGBackend};

use crate::arguments;
use crate::bench::{Measurements, read};

/// How much larger bitmaps are than the other pictures.
const PNG_SCALE: i32 = 2;
/// Most programs and inputs that fit into a picture.
const MOST_SUBJECTS: usize = 64;

/// Draws all figures.
pub(crate) fn run(arguments: &arguments::Figures) -> anyhow::Result<()> {
    let measurements = Measurements::new(read(&arguments.csv)?);
    let subjects = measurements.subjects.len();
    anyhow::ensure!(
        subjects <= MOST_SUBJECTS,
        "{subjects} inputs do not fit into a picture, {MOST_SUBJECTS} do"
    );
    let out = &arguments.out;
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    draw::register_font()?;
    for (name, chart) in content::charts(&measurements) {
        let size = |scale: i32| {
            let (width, height) = draw::size(&chart);
            ((width * scale) as u32, (height * scale) as u32)
        };
        let failed = || format!("cannot draw {name}");
        let svg = out.join(format!("{name}.svg"));
        draw::draw(&SVGBackend::new(&svg, size(1)).into_drawing_area(), 1, &chart).with_context(failed)?;
        let png = out.join(format!("{name}.png"));
        draw::draw(&BitMapBackend::new(&png, size(PNG_SCALE)).into_drawing_area(), PNG_SCALE, &chart)
            .with_context(failed)?;
        println!("{} and {}", svg.display(), png.display());
    }
    Ok(())
}

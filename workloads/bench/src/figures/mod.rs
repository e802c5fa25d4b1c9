//! The thesis's figures 5 to 10, and overviews by program, as SVG.

mod chart;
mod content;
mod draw;
mod paint;

use std::path::Path;

use anyhow::Context;
use plotters::prelude::{IntoDrawingArea, SVGBackend};

use crate::bench::Measurements;

pub(crate) fn draw(measurements: &Measurements, out: &Path) -> anyhow::Result<()> {
    draw::register_font()?;
    for (name, chart) in content::charts(measurements) {
        let path = out.join(format!("{name}.svg"));
        draw::draw(SVGBackend::new(&path, draw::size(&chart)).into_drawing_area(), &chart)
            .with_context(|| format!("cannot draw {}", path.display()))?;
    }
    Ok(())
}

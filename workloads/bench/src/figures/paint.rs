//! Draws rectangles, lines and text in pixels.

use anyhow::anyhow;
use plotters::coord::Shift;
use plotters::prelude::{DrawingArea, PathElement, Rectangle, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontDesc, FontFamily, FontStyle, FontTransform, RGBColor, TextStyle};

/// Font name. In an SVG it is a list: viewers without the first font use the next.
pub(super) const FONT: &str = "DejaVu Sans, Verdana, sans-serif";

/// Appearance of text, and the anchor that its position refers to.
#[derive(Clone, Copy)]
pub(super) struct Text {
    size: i32,
    colour: RGBColor,
    bold: bool,
    upwards: bool,
    anchor: (HPos, VPos),
}

impl Text {
    /// Creates text of this size in pixels, with the anchor at its upper left corner.
    pub(super) fn new(size: i32, colour: RGBColor) -> Self {
        Self { size, colour, bold: false, upwards: false, anchor: (HPos::Left, VPos::Top) }
    }

    pub(super) fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    /// Rotates the text so that it reads upwards. The anchor refers to the text before rotation.
    pub(super) fn upwards(self) -> Self {
        Self { upwards: true, ..self }
    }

    pub(super) fn at(self, horizontal: HPos, vertical: VPos) -> Self {
        Self { anchor: (horizontal, vertical), ..self }
    }

    fn style(&self) -> TextStyle<'_> {
        let style = if self.bold { FontStyle::Bold } else { FontStyle::Normal };
        let turn = if self.upwards { FontTransform::Rotate270 } else { FontTransform::None };
        let font = FontDesc::new(FontFamily::Name(FONT), f64::from(self.size), style).transform(turn);
        TextStyle::from(font).color(&self.colour).pos(Pos::new(self.anchor.0, self.anchor.1))
    }
}

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub(super) struct Paint<'a>(pub(super) Area<'a>);

/// Converts errors of the library to text, because their types depend on the backend.
fn failed(error: impl std::error::Error) -> anyhow::Error {
    anyhow!("{error}")
}

impl Paint<'_> {
    pub(super) fn rectangle(&self, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> anyhow::Result<()> {
        let corners = [from, to];
        self.0.draw(&Rectangle::new(corners, colour.filled())).map_err(failed)
    }

    /// Draws the outline of a rectangle, inside its edges and `width` pixels wide.
    pub(super) fn outline(
        &self,
        from: (i32, i32),
        to: (i32, i32),
        colour: RGBColor,
        width: i32,
    ) -> anyhow::Result<()> {
        let ((left, top), (right, bottom)) = (from, to);
        for inset in 0..width {
            let corners = [(left + inset, top + inset), (right - inset, bottom - inset)];
            self.0.draw(&Rectangle::new(corners, colour.stroke_width(1))).map_err(failed)?;
        }
        Ok(())
    }

    pub(super) fn line(
        &self,
        from: (i32, i32),
        to: (i32, i32),
        colour: RGBColor,
        width: u32,
    ) -> anyhow::Result<()> {
        let path = vec![from, to];
        let style = colour.stroke_width(width);
        self.0.draw(&PathElement::new(path, style)).map_err(failed)
    }

    /// Draws a dashed horizontal line.
    pub(super) fn dashes(&self, from: (i32, i32), to: i32, colour: RGBColor) -> anyhow::Result<()> {
        for x in (from.0..to).step_by(10) {
            self.line((x, from.1), ((x + 6).min(to), from.1), colour, 2)?;
        }
        Ok(())
    }

    pub(super) fn text(&self, text: &str, at: (i32, i32), font: &Text) -> anyhow::Result<()> {
        self.0.draw_text(text, &font.style(), at).map_err(failed)
    }

    pub(super) fn width(&self, text: &str, font: &Text) -> anyhow::Result<i32> {
        let (width, _) = self.0.estimate_text_size(text, &font.style()).map_err(failed)?;
        Ok(width as i32 + 1)
    }

    /// Writes the file.
    pub(super) fn present(&self) -> anyhow::Result<()> {
        self.0.present().map_err(failed)
    }
}

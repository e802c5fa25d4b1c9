//! Rectangles, lines and text in pixels, on any of the plotting library's backends.

use anyhow::anyhow;
use plotters::coord::Shift;
use plotters::prelude::{DrawingArea, DrawingBackend, PathElement, Rectangle};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontDesc, FontFamily, FontStyle, FontTransform, RGBColor, TextStyle};

/// The font's name. In an SVG it is a list, from which a reader without the font takes the next.
pub(super) const FONT: &str = "DejaVu Sans, Verdana, sans-serif";

/// How text looks, and which of its points the place means.
#[derive(Clone, Copy)]
pub(super) struct Text {
    size: i32,
    colour: RGBColor,
    bold: bool,
    upwards: bool,
    anchor: (HPos, VPos),
}

impl Text {
    /// Text of this size in pixels; the place is that of its upper left corner.
    pub(super) fn new(size: i32, colour: RGBColor) -> Self {
        Self { size, colour, bold: false, upwards: false, anchor: (HPos::Left, VPos::Top) }
    }

    /// Bold.
    pub(super) fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    /// Turned, so that it is read upwards. The anchor is that of the text before it is turned.
    pub(super) fn upwards(self) -> Self {
        Self { upwards: true, ..self }
    }

    /// With another anchor.
    pub(super) fn at(self, horizontal: HPos, vertical: VPos) -> Self {
        Self { anchor: (horizontal, vertical), ..self }
    }

    fn style(&self, scale: i32) -> TextStyle<'_> {
        let style = if self.bold { FontStyle::Bold } else { FontStyle::Normal };
        let turn = if self.upwards { FontTransform::Rotate270 } else { FontTransform::None };
        let font = FontDesc::new(FontFamily::Name(FONT), f64::from(self.size * scale), style).transform(turn);
        TextStyle::from(font).color(&self.colour).pos(Pos::new(self.anchor.0, self.anchor.1))
    }
}

/// Draws into an area.
pub(super) struct Paint<'a, B: DrawingBackend> {
    pub(super) area: &'a DrawingArea<B, Shift>,
    /// Pixels of the area for one of the chart's. Small text in a bitmap is set unevenly, so bitmaps are
    /// larger.
    pub(super) scale: i32,
}

/// The library's errors belong to a backend and cannot be kept.
fn failed(error: impl std::error::Error) -> anyhow::Error {
    anyhow!("{error}")
}

impl<B: DrawingBackend> Paint<'_, B> {
    fn scaled(&self, place: (i32, i32)) -> (i32, i32) {
        (place.0 * self.scale, place.1 * self.scale)
    }

    /// A filled rectangle.
    pub(super) fn rectangle(&self, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> anyhow::Result<()> {
        let corners = [self.scaled(from), self.scaled(to)];
        self.area.draw(&Rectangle::new(corners, colour.filled())).map_err(failed)
    }

    /// The outline of a rectangle, inside of it, `width` pixels wide.
    pub(super) fn outline(
        &self,
        from: (i32, i32),
        to: (i32, i32),
        colour: RGBColor,
        width: i32,
    ) -> anyhow::Result<()> {
        let ((left, top), (right, bottom)) = (self.scaled(from), self.scaled(to));
        for inset in 0..width * self.scale {
            let corners = [(left + inset, top + inset), (right - inset, bottom - inset)];
            self.area.draw(&Rectangle::new(corners, colour.stroke_width(1))).map_err(failed)?;
        }
        Ok(())
    }

    /// A straight line.
    pub(super) fn line(
        &self,
        from: (i32, i32),
        to: (i32, i32),
        colour: RGBColor,
        width: u32,
    ) -> anyhow::Result<()> {
        let path = vec![self.scaled(from), self.scaled(to)];
        let style = colour.stroke_width(width * self.scale.unsigned_abs());
        self.area.draw(&PathElement::new(path, style)).map_err(failed)
    }

    /// A broken horizontal line.
    pub(super) fn dashes(&self, from: (i32, i32), to: i32, colour: RGBColor) -> anyhow::Result<()> {
        for x in (from.0..to).step_by(10) {
            self.line((x, from.1), ((x + 6).min(to), from.1), colour, 2)?;
        }
        Ok(())
    }

    /// Text.
    pub(super) fn text(&self, text: &str, at: (i32, i32), font: &Text) -> anyhow::Result<()> {
        self.area.draw_text(text, &font.style(self.scale), self.scaled(at)).map_err(failed)
    }

    /// Width of a text in pixels.
    pub(super) fn width(&self, text: &str, font: &Text) -> anyhow::Result<i32> {
        let (width, _) = self.area.estimate_text_size(text, &font.style(self.scale)).map_err(failed)?;
        Ok(width as i32 / self.scale + 1)
    }

    /// Writes the file.
    pub(super) fn present(&self) -> anyhow::Result<()> {
        self.area.present().map_err(failed)
    }
}

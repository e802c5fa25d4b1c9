//! The picture as a PNG.

use std::io::Write;

/// Writes `image` (`width` pixels a row) as an 8-bit grey PNG: black where the depth was reached, else the
/// darker the sooner the pixel escaped, on a logarithmic scale.
///
/// # Errors
/// If the output cannot be written, or the image has no `width` x `width` pixels.
pub fn write_png(
    output: impl Write,
    image: &[u32],
    width: u32,
    depth: u32,
) -> Result<(), png::EncodingError> {
    let mut encoder = png::Encoder::new(output, width, width);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::Eight);
    let scale = 255.0 / f64::from(depth).max(2.0).ln();
    let pixels: Vec<u8> = image
        .iter()
        .map(|&steps| if steps >= depth { 0 } else { (f64::from(steps.max(1)).ln() * scale) as u8 })
        .collect();
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    writer.finish()
}

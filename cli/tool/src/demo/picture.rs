//! The Mandelbrot set, one thread per pixel.

#[warptrace::kernels]
pub mod mandelbrot {
    use warptrace::device::{DisjointSlice, thread};

    /// Writes to each pixel of a square picture the number of steps until its point leaves the circle of
    /// radius two, at most `depth`.
    ///
    /// `left` and `top` are the upper left corner of the square, `side` is the distance between two pixels.
    #[kernel]
    pub fn mandelbrot(picture: DisjointSlice<u32>, width: u32, depth: u32, left: f64, top: f64, side: f64) {
        let Some((pixel, steps)) = picture.own(thread::index()) else { return };
        let (row, column) = (pixel as u32 / width, pixel as u32 % width);
        *steps = steps_of(left + f64::from(column) * side, top - f64::from(row) * side, depth);
    }

    /// Returns the number of steps of z = z^2 + c until |z| exceeds two, at most `depth`.
    pub(crate) fn steps_of(cx: f64, cy: f64, depth: u32) -> u32 {
        let (mut x, mut y, mut steps) = (0.0, 0.0, 0);
        while steps < depth && x * x + y * y <= 4.0 {
            (x, y) = (x * x - y * y + cx, 2.0 * x * y + cy);
            steps += 1;
        }
        steps
    }
}
